// The smallest use of a ring of stages: a warp fills, another drains.
#pragma once

#include <cstdint>

#include "arch/debug.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "testing/demo/ring.hpp"

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
    Ring<kStages> ring;
    static PAGODA_DEVICE int at(int step) { return Ring<kStages>::stage(step) * 32; }
  };
  static constexpr int kThreads = 64;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    if (arch::thread_idx() == 0) {
      storage.ring.init_full(32);
      storage.ring.init_empty(32);
    }
    arch::syncthreads();  // the barriers are initialised
    if (arch::warp_idx() == 0) {
      fill(params, storage);
    } else {
      drain(params, storage);
    }
  }

 private:
  static PAGODA_DEVICE void fill(const Params& params, Storage& storage) {
    const arch::Role role("producer");
    const int lane = arch::lane_idx();
    for (int item = 0; item < params.items; ++item) {
      storage.ring.acquire(item);  // the 32 lanes of drain() have read the stage
      arch::trace_begin("fill");
      arch::store(storage.slot.at(Storage::at(item) + lane),
                  arch::load(params.in + item * 32 + lane));
      storage.ring.full(item).arrive();
      arch::trace_end();
    }
  }

  static PAGODA_DEVICE void drain(const Params& params, Storage& storage) {
    const arch::Role role("consumer");
    const int lane = arch::lane_idx();
    for (int item = 0; item < params.items; ++item) {
      storage.ring.wait_full(item);  // the 32 lanes of fill() have stored the row
      arch::trace_begin("drain");
      const uint32_t word = arch::load(storage.slot.at(Storage::at(item) + lane));
      storage.ring.empty(item).arrive();
      arch::store(params.out + item * 32 + lane, word + arch::reduce_add(word));
      arch::trace_end();
    }
  }
};

}  // namespace pagoda::demo
