// PairQueue: the atomic counter of grid entries (grid_work.hpp) for a pair of CTAs, which compute
// the same work tiles. The scheduler lane of the leader draws and sends each number to that of its
// peer by st.async.
//
//   full   peer:   the peer's arrival, which expects 4 bytes; st.async completes them
//   empty  leader: 1 arrival: the peer has read the number
#pragma once

#include <cstdint>

#include "arch/cluster.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "kernels/common/grid_work.hpp"

namespace pagoda::kernels::sm100 {

struct PairQueue {
  arch::SharedArray<int32_t, 1> number;
  arch::MBarrier full, empty;

  // One thread of each CTA calls; fence_mbarrier_init and a cluster barrier must follow.
  PAGODA_DEVICE void init() {
    full.init(1);
    empty.init(1);
    arch::name_barrier(full, "draw full", 0);
    arch::name_barrier(empty, "draw empty", 0);
  }
};

// A TileCounter. Both CTAs draw equally often: they see the same numbers, and stop at the same one.
class PairDraws {
 public:
  PAGODA_DEVICE PairDraws(const AttentionParams& params, PairQueue& queue, int rank)
      : counter_{params.grid_counter, params.grid.size()}, queue_(queue), rank_(rank) {}

  PAGODA_DEVICE int32_t operator()() {
    const uint32_t phase = phase_;
    phase_ ^= 1U;
    if (rank_ == kLeader) {
      const int32_t drawn = counter_();
      // Waits until the peer has read the previous number; its scheduler lane arrives.
      queue_.empty.wait_cluster(phase ^ 1U);
      arch::store_async(arch::map_shared(queue_.number.at(0), kPeer), drawn, queue_.full, kPeer);
      return drawn;
    }
    queue_.full.arrive_expect_tx(sizeof(int32_t));
    queue_.full.wait_cluster(phase);  // waits until the leader's store has landed
    const int32_t drawn = arch::load(queue_.number.at(0));
    queue_.empty.arrive_remote(kLeader);
    return drawn;
  }

 private:
  static constexpr int kLeader = 0, kPeer = 1;

  GridCounter counter_;
  PairQueue& queue_;
  int rank_;
  uint32_t phase_ = 0;
};

// As GridQueue: {grid, index of the pair, number of pairs, draws}.
using PairScheduler = schedule::QueuedScheduler<PairDraws>;

}  // namespace pagoda::kernels::sm100
