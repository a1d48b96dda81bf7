// Which named barriers the consumers use; 0 is syncthreads.
#pragma once

#include "arch/named_barrier.hpp"
#include "kernels/mha_sm90/config.hpp"

namespace pagoda::mha_sm90 {

inline constexpr int kTurnBarrier = 1;       // + warpgroup: its turn to issue products (README.md)
inline constexpr int kWarpgroupBarrier = 4;  // + warpgroup: its own threads

// All threads of one consumer.
PAGODA_DEVICE void sync_warpgroup(int warpgroup, arch::Where where = arch::Where::current()) {
  arch::named_barrier_sync(kWarpgroupBarrier + warpgroup, kWarpgroup, where);
}

}  // namespace pagoda::mha_sm90
