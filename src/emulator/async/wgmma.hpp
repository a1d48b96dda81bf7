// Asynchronous matrix products of warpgroups. Each thread hands over its part; the last one issues
// the operation to the warpgroup's engine, which works in order. Until the wait for its group, the
// accumulators live in the engine, and the threads' registers hold poison (NaN).
#pragma once

#include <cstdint>

#include "arch/layout/smem_descriptor.hpp"
#include "emulator/async/matrix_math.hpp"
#include "emulator/machine/machine.hpp"

namespace pagoda::emulator {

struct WgmmaShape {
  ElementType type;
  int n;
  arch::Major a_major, b_major;
  bool has_a_in_registers;
  friend bool operator==(const WgmmaShape&, const WgmmaShape&) = default;
};

// Of the executing thread.
struct WgmmaOperands {
  float* accumulators;          // [n / 2]; must stay in scope until the wait
  const uint32_t* a_registers;  // [4], or nullptr; read at once
  arch::SmemDescriptor a, b;
  bool accumulates;
};

void wgmma(const WgmmaShape& shape, const WgmmaOperands& operands, const Where& where);
void wgmma_fence(const Where& where);
void wgmma_commit_group(const Where& where);
void wgmma_wait_group(int groups_in_flight, const Where& where);

// Reports what the thread leaves in flight.
void wgmma_end_thread(const Thread& thread);

}  // namespace pagoda::emulator
