// A ring of stages, each with a full and an empty barrier, by mbarriers alone: what the small
// kernels share. The kernels of the library use src/pipeline.
#pragma once

#include <cstdint>

#include "arch/debug.hpp"
#include "arch/mbarrier.hpp"
#include "core/target.hpp"

namespace pagoda::demo {

// Lies in shared memory. `step` counts the uses of the ring: step s uses stage s % kStages.
template <int kStages>
struct Ring {
  arch::MBarrier full_mbar[kStages];
  arch::MBarrier empty_mbar[kStages];

  static PAGODA_DEVICE int stage(int step) { return step % kStages; }

  // Both by one thread, before a barrier of the CTA.
  PAGODA_DEVICE void init_full(uint32_t arrivals, arch::Where where = arch::Where::current()) {
    init(full_mbar, "full", arrivals, where);
  }
  PAGODA_DEVICE void init_empty(uint32_t arrivals, arch::Where where = arch::Where::current()) {
    init(empty_mbar, "empty", arrivals, where);
  }

  PAGODA_DEVICE arch::MBarrier& full(int step) { return full_mbar[stage(step)]; }
  PAGODA_DEVICE arch::MBarrier& empty(int step) { return empty_mbar[stage(step)]; }

  // Waits for the consumers to release the stage; they signal empty(step - kStages).
  PAGODA_DEVICE void acquire(int step, arch::Where where = arch::Where::current()) {
    empty(step).wait(phase(step) ^ 1U, where);
  }
  // Waits for the producer to fill the stage; it signals full(step).
  PAGODA_DEVICE void wait_full(int step, arch::Where where = arch::Where::current()) {
    full(step).wait(phase(step), where);
  }

 private:
  static PAGODA_DEVICE void init(arch::MBarrier (&mbar)[kStages], const char* name,
                                 uint32_t arrivals, arch::Where where) {
    for (int stage = 0; stage < kStages; ++stage) {
      arch::name_barrier(mbar[stage], name, stage);
      mbar[stage].init(arrivals, where);
    }
  }
  static PAGODA_DEVICE uint32_t phase(int step) {
    return static_cast<uint32_t>(step / kStages) & 1U;
  }
};

}  // namespace pagoda::demo
