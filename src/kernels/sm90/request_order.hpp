// The first Q of a CTA is requested before its K and V. Those fill every queue of memory at once, and
// behind them Q took 12,000 cycles, before which nothing can be multiplied (H200, one sequence of 64k
// keys). Nothing but time depends on it.
#pragma once

#include "kernels/sm90/named_barriers.hpp"

namespace pagoda::sm90 {

// One object in every warp that requests Q, K or V of packed rows; each calls once a unit.
template <class Config>
class RequestOrder {
 public:
  // After the loads of Q, or where the unit needs none.
  PAGODA_DEVICE void q_is_requested() {
    if (!is_used || !is_first_) return;
    arch::named_barrier_arrive(kRequestBarrier, kThreads);
    is_first_ = false;
  }
  // Before the first copy of K or V.
  PAGODA_DEVICE void wait_for_q() {
    if (!is_used || !is_first_) return;
    arch::named_barrier_sync(kRequestBarrier, kThreads);
    is_first_ = false;
  }

 private:
  static constexpr bool is_used =
      Config::tile.rows == RowKind::kPacked && Config::tile.load != LoadKind::kGather;
  static constexpr int kThreads = 2 * 32 + (Config::tile.has_warp_products() ? kWarpgroup : 32);

  bool is_first_ = true;
};

}  // namespace pagoda::sm90
