// A kernel with one bug of each kind that the emulator reports; docs/emulator.md shows the reports.
// On a GPU most of the bugs fail now and then; only the deadlock fails always.
#pragma once

#include <cstdint>

#include "arch/bulk_copy.hpp"
#include "arch/debug.hpp"
#include "arch/fence.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/tma.hpp"
#include "testing/demo/ring.hpp"

namespace pagoda::demo {

// Copies rows of 32 words through two stages: one warp fills, another drains by the copy engine.
struct Planted {
  enum class Bug {
    kRace,           // the copy engine reads without a proxy fence
    kDeadlock,       // one lane releases a stage that counts 32 arrivals
    kUninitialised,  // a lane skips its store
    kBounds,         // one row too many
    kProtocol,       // the thread ends without a wait for its last bulk_store
  };
  struct Params {
    arch::GlobalPtr<const uint32_t> in;  // [rows, 32]
    arch::GlobalPtr<uint32_t> out;       // [rows, 32]
    int rows;
    Bug bug;
  };
  static constexpr int kStages = 2;
  struct Storage {
    arch::SharedArray<uint32_t, kStages * 32, 128> slot;  // [stage, 32]
    Ring<kStages> ring;
    static PAGODA_DEVICE int at(int step) { return Ring<kStages>::stage(step) * 32; }
  };
  static constexpr int kThreads = 64;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    if (arch::thread_idx() == 0) {
      storage.ring.init_full(32);
      storage.ring.init_empty(params.bug == Bug::kDeadlock ? 32 : 1);
      arch::name_shared(storage.slot.data(), storage.slot.bytes(), "slot");
    }
    arch::syncthreads();
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
    const int rows = params.rows + (params.bug == Bug::kBounds ? 1 : 0);
    for (int row = 0; row < rows; ++row) {
      storage.ring.acquire(row);  // drain() has stored the stage
      if (params.bug != Bug::kUninitialised || lane != 5) {
        arch::store(storage.slot.at(Storage::at(row) + lane),
                    arch::load(params.in + row * 32 + lane));
      }
      if (params.bug != Bug::kRace) arch::fence_proxy_async_shared();
      storage.ring.full(row).arrive();
    }
  }

  static PAGODA_DEVICE void drain(const Params& params, Storage& storage) {
    const arch::Role role("consumer");
    if (arch::lane_idx() != 0) return;
    for (int row = 0; row < params.rows; ++row) {
      storage.ring.wait_full(row);  // the 32 lanes of fill() have stored the row
      arch::bulk_store(1, params.out + row * 32, storage.slot.at(Storage::at(row)), 128);
      arch::bulk_commit_group();
      if (params.bug == Bug::kProtocol && row == params.rows - 1) return;
      arch::bulk_wait_group<0>();  // the bulk_store has read the stage
      storage.ring.empty(row).arrive();
    }
  }
};

}  // namespace pagoda::demo
