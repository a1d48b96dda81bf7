// The smallest ring of stages: a warp fills, another drains, a full and an empty barrier a stage.
#pragma once

#include <cstdint>

#include "arch/debug.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"

namespace pagoda::demo {

// Adds to each word of a row of 32 the sum of the row.
struct Relay {
  struct Params {
    arch::GlobalPtr<const uint32_t> in;  // [items, 32]
    arch::GlobalPtr<uint32_t> out;       // [items, 32]
    int items;
  };
  static constexpr int kStages = 4;
  struct Storage {
    arch::SharedArray<uint32_t, kStages * 32> slot;  // [stage, 32]
    arch::MBarrier full[kStages];
    arch::MBarrier empty[kStages];
  };
  static constexpr int kThreads = 64;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    if (arch::thread_idx() == 0) {
      for (int stage = 0; stage < kStages; ++stage) {
        arch::name_barrier(storage.full[stage], "full", stage);
        arch::name_barrier(storage.empty[stage], "empty", stage);
        storage.full[stage].init(32);
        storage.empty[stage].init(32);
      }
    }
    arch::syncthreads();  // the barriers are initialised
    if (arch::warp_idx() == 0) {
      fill(params, storage);
    } else {
      drain(params, storage);
    }
  }

 private:
  static PAGODA_DEVICE uint32_t phase_of(int item) {
    return static_cast<uint32_t>(item / kStages) & 1U;
  }

  static PAGODA_DEVICE void fill(const Params& params, Storage& storage) {
    const arch::Role role("producer");
    const int lane = arch::lane_idx();
    for (int item = 0; item < params.items; ++item) {
      const int stage = item % kStages;
      storage.empty[stage].wait(phase_of(item) ^ 1U);  // drained by the consumer
      arch::trace_begin("fill");
      arch::store(storage.slot.at(stage * 32 + lane), arch::load(params.in + item * 32 + lane));
      storage.full[stage].arrive();
      arch::trace_end();
    }
  }

  static PAGODA_DEVICE void drain(const Params& params, Storage& storage) {
    const arch::Role role("consumer");
    const int lane = arch::lane_idx();
    for (int item = 0; item < params.items; ++item) {
      const int stage = item % kStages;
      storage.full[stage].wait(phase_of(item));  // filled by the producer
      arch::trace_begin("drain");
      const uint32_t word = arch::load(storage.slot.at(stage * 32 + lane));
      storage.empty[stage].arrive();
      arch::store(params.out + item * 32 + lane, word + arch::reduce_add(word));
      arch::trace_end();
    }
  }
};

}  // namespace pagoda::demo
