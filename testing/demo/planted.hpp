// A kernel with one bug of each kind that the emulator reports; docs/emulator.md shows what it
// says. On a GPU most of them fail now and then; only the deadlock fails always.
#pragma once

#include <cstdint>

#include "arch/bulk_copy.hpp"
#include "arch/debug.hpp"
#include "arch/fence.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/tma.hpp"

namespace pagoda::demo {

// Copies rows of 32 words through two stages: one warp fills, another drains by the copy engine.
struct Planted {
  enum class Bug {
    kRace,           // the copy engine reads without a proxy fence
    kDeadlock,       // one lane releases a stage that counts 32 arrivals
    kUninitialised,  // a lane skips its store
    kBounds,         // one row too many
    kProtocol,       // the last store of the copy engine is not waited for
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
        storage.empty[stage].init(params.bug == Bug::kDeadlock ? 32 : 1);
      }
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
  static PAGODA_DEVICE uint32_t phase_of(int row) {
    return static_cast<uint32_t>(row / kStages) & 1U;
  }

  static PAGODA_DEVICE void fill(const Params& params, Storage& storage) {
    const arch::Role role("producer");
    const int lane = arch::lane_idx();
    const int rows = params.rows + (params.bug == Bug::kBounds ? 1 : 0);
    for (int row = 0; row < rows; ++row) {
      const int stage = row % kStages;
      storage.empty[stage].wait(phase_of(row) ^ 1U);
      if (params.bug != Bug::kUninitialised || lane != 5) {
        arch::store(storage.slot.at(stage * 32 + lane), arch::load(params.in + row * 32 + lane));
      }
      if (params.bug != Bug::kRace) arch::fence_proxy_async_shared();
      storage.full[stage].arrive();
    }
  }

  static PAGODA_DEVICE void drain(const Params& params, Storage& storage) {
    const arch::Role role("consumer");
    if (arch::lane_idx() != 0) return;
    for (int row = 0; row < params.rows; ++row) {
      const int stage = row % kStages;
      storage.full[stage].wait(phase_of(row));
      arch::bulk_store(1, params.out + row * 32, storage.slot.at(stage * 32), 128);
      arch::bulk_commit_group();
      if (params.bug == Bug::kProtocol && row == params.rows - 1) return;
      arch::bulk_wait_group<0>();  // the engine has read the stage
      storage.empty[stage].arrive();
    }
  }
};

}  // namespace pagoda::demo
