// Named barriers, those of the consumer warpgroups w = 0, 1, 2 first. Barrier 0 is syncthreads.
//
//   id     threads  arrives                           waits
//   1 + w  256      the previous consumer, when it    consumer w, before it issues its products
//                   has issued its products           (ping-pong: for speed only)
//   4 + w  128      all threads of consumer w         the same, before they overwrite shared memory
//                                                     or read what the others have stored
//   7      all      all; two warps when they have       all but the scheduler warp, before they use
//                   initialised the mbarriers           an mbarrier
//   8 + s  256      latent rows: the first warpgroup,   the second, before it issues P V of the
//                   when it has S of the tile after     tile in stage s of K (for speed only);
//                   that in stage s                     two: the first may be a tile ahead
#pragma once

#include "arch/named_barrier.hpp"
#include "kernels/mha_sm90/config.hpp"

namespace pagoda::mha_sm90 {

inline constexpr int kPingPongBarrier = 1;
inline constexpr int kWarpgroupBarrier = 4;
inline constexpr int kInitBarrier = 7;
inline constexpr int kScoresBarrier = 8;

// Synchronises all threads of one consumer warpgroup.
PAGODA_DEVICE void sync_warpgroup(int warpgroup, arch::Where where = arch::Where::current()) {
  arch::named_barrier_sync(kWarpgroupBarrier + warpgroup, kWarpgroup, where);
}

}  // namespace pagoda::mha_sm90
