// A ring of stages that the copy engine fills: one lane issues bulk copies as far ahead as there
// are free stages, a warpgroup works on the rows, and the engine writes them back.
#pragma once

#include <cstdint>

#include "arch/bulk_copy.hpp"
#include "arch/debug.hpp"
#include "arch/fence.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/tma.hpp"
#include "arch/warp.hpp"
#include "testing/demo/ring.hpp"

namespace pagoda::demo {

// out = 3 in + 1, a row of 128 words at a time; a CTA takes every grid-th row.
struct CopyRing {
  struct Params {
    arch::GlobalPtr<const uint32_t> in;  // [rows, 128]
    arch::GlobalPtr<uint32_t> out;       // [rows, 128]
    int rows;
  };
  static constexpr int kStages = 3;
  static constexpr int kWidth = 128;
  static constexpr uint32_t kRowBytes = kWidth * 4;
  struct Storage {
    arch::SharedArray<uint32_t, kStages * kWidth, 128> in;  // [stage, 128]
    arch::SharedArray<uint32_t, 2 * kWidth, 128> out;       // [2, 128]
    Ring<kStages> ring;
  };
  static constexpr int kConsumers = 128;
  static constexpr int kThreads = kConsumers + 32;  // and the warp that loads

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    if (arch::thread_idx() == 0) {
      storage.ring.init_full(1);
      storage.ring.init_empty(kConsumers);
      arch::name_shared(storage.in.data(), storage.in.bytes(), "in");
      arch::name_shared(storage.out.data(), storage.out.bytes(), "out");
      arch::fence_mbarrier_init();  // the inits, before copies of the engine signal the barriers
    }
    arch::syncthreads();
    if (arch::warp_idx() == kConsumers / 32) {
      load_rows(params, storage);
    } else {
      work_on_rows(params, storage);
    }
  }

 private:
  static PAGODA_DEVICE void load_rows(const Params& params, Storage& storage) {
    const arch::Role role("load");
    // One lane alone waits and issues. Lanes that only wait could be a whole round of the ring
    // late, and would then wait for a phase of the same parity.
    if (arch::elect_one() == 0) return;
    int step = 0;
    for (int row = arch::block_idx().x; row < params.rows; row += arch::grid_dim().x, ++step) {
      storage.ring.acquire(step);  // the 128 consumers have read the stage
      arch::trace_begin("issue");
      storage.ring.full(step).arrive_expect_tx(kRowBytes);
      arch::bulk_load(1, storage.in.at(Ring<kStages>::stage(step) * kWidth),
                      params.in + row * kWidth, kRowBytes, storage.ring.full(step));
      arch::trace_end();
    }
  }

  static PAGODA_DEVICE void work_on_rows(const Params& params, Storage& storage) {
    const arch::Role role("work");
    const int thread = arch::thread_idx();
    const int32_t is_first = thread == 0 ? 1 : 0;
    int step = 0;
    for (int row = arch::block_idx().x; row < params.rows; row += arch::grid_dim().x, ++step) {
      const int half = step % 2 * kWidth;
      storage.ring.wait_full(step);  // the copy engine has written the row
      arch::trace_begin("row");
      const uint32_t word = arch::load(storage.in.at(Ring<kStages>::stage(step) * kWidth + thread));
      storage.ring.empty(step).arrive();
      // Waits for the bulk_store of two steps ago to read `half`.
      if (is_first != 0) arch::bulk_wait_group_read<1>();
      arch::named_barrier_sync(1, kConsumers);
      arch::store(storage.out.at(half + thread), 3 * word + 1);
      arch::fence_proxy_async_shared();  // the store above, before the bulk_store reads it
      arch::named_barrier_sync(1, kConsumers);
      arch::bulk_store(is_first, params.out + row * kWidth, storage.out.at(half), kRowBytes);
      if (is_first != 0) arch::bulk_commit_group();
      arch::trace_end();
    }
    if (is_first != 0) arch::bulk_wait_group<0>();
  }
};

}  // namespace pagoda::demo
