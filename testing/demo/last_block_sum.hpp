// A sum over the grid without a second launch: the last CTA to finish adds the partial sums.
#pragma once

#include <cstdint>

#include "arch/debug.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"

namespace pagoda::demo {

struct LastBlockSum {
  struct Params {
    arch::GlobalPtr<const uint32_t> in;  // [blocks, 64]
    arch::GlobalPtr<uint32_t> partial;   // [blocks]
    arch::GlobalPtr<uint32_t> ticket;    // [1], zero
    arch::GlobalPtr<uint32_t> out;       // [1]
    int blocks;
  };
  struct Storage {
    arch::SharedArray<uint32_t, 2> sums;  // of the warps
  };
  static constexpr int kThreads = 64;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    const int block = arch::block_idx().x;
    const uint32_t sum =
        arch::reduce_add(arch::load(params.in + block * kThreads + arch::thread_idx()));
    const int warp = arch::warp_idx();
    if (arch::lane_idx() == 0) arch::store(storage.sums.at(warp), sum);
    arch::syncthreads();
    if (arch::thread_idx() != 0) return;
    const arch::Role role("first thread");
    arch::store(params.partial + block,
                arch::load(storage.sums.at(0)) + arch::load(storage.sums.at(1)));
    arch::thread_fence();  // the store of the partial sum, before the ticket
    const uint32_t ticket = arch::atomic_add(params.ticket, 1);
    if (ticket + 1 != static_cast<uint32_t>(params.blocks)) return;
    arch::thread_fence();  // the earlier tickets, before loads of their partial sums
    uint32_t total = 0;
    for (int i = 0; i < params.blocks; ++i) total += arch::load(params.partial + i);
    arch::store(params.out, total);
  }
};

}  // namespace pagoda::demo
