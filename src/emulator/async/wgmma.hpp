// Asynchronous matrix products of warpgroups. Each of the 128 threads adds its operands; the last
// one issues the operation to the warpgroup's engine, which works in order. Until the wait for its
// group, the engine owns the accumulators, and the registers of the threads contain poison (NaN).
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

// The operands of the executing thread.
struct WgmmaOperands {
  float* accumulators;          // [n / 2]; must stay in scope until the wait
  const uint32_t* a_registers;  // [4], or nullptr; the same, and unchanged
  arch::SmemDescriptor a, b;
  bool accumulates;
};

void wgmma(const WgmmaShape& shape, const WgmmaOperands& operands, const Where& where);
void wgmma_fence(const Where& where);
void wgmma_commit_group(const Where& where);
void wgmma_wait_group(int groups_in_flight, const Where& where);

// Reports wgmma and groups that the ended thread has not committed or not waited for.
void wgmma_end_thread(const Thread& thread);

}  // namespace pagoda::emulator
