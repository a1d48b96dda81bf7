// An operand of a matrix instruction in shared memory, read through its descriptor by the engine.
#pragma once

#include <cstdint>

#include "arch/layout/smem_descriptor.hpp"
#include "emulator/async/matrix_math.hpp"
#include "emulator/machine/machine.hpp"

namespace pagoda::emulator {

struct MatrixOperand {
  const char* name;  // "A", for reports
  arch::SmemDescriptor descriptor;
  arch::DescriptorFormat format;
  arch::Major major;
  ElementType type;
  int mn, k;                // elements; the hardware reads whole chunks of 16 bytes
  int mn_stride, k_stride;  // of the panel
};

// Reads for `operation` from the shared memory of `cta`; element (mn, k) goes to
// panel[mn * mn_stride + k * k_stride]. Bytes that nothing wrote are poison (NaN).
void read_operand(Machine& machine, const AsyncOperation& operation, const Cta& cta,
                  const MatrixOperand& operand, float* panel);

}  // namespace pagoda::emulator
