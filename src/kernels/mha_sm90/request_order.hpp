// The first Q of a CTA is requested before its K and V. Those fill every queue of memory at once, and
// behind them Q took 12,000 cycles, before which nothing can be multiplied (H200, one sequence of 64k
// keys). Nothing but time depends on it.
#pragma once

#include "arch/mbarrier.hpp"
#include "arch/warp.hpp"
#include "kernels/mha_sm90/storage.hpp"

namespace pagoda::mha_sm90 {

// One object in every warp that requests Q, K or V of packed rows.
template <class Config>
class RequestOrder {
 public:
  static constexpr bool is_used =
      Config::tile.rows == RowKind::kPacked && Config::tile.load != LoadKind::kGather;

  PAGODA_DEVICE explicit RequestOrder(Storage<Config>& storage) : storage_(storage) {}

  // At every unit, after the loads of its Q or where it needs none.
  PAGODA_DEVICE void q_is_requested() {
    if (!is_used || !is_first_) return;
    storage_.q_requested.arrive_if(arch::elect_one());
    is_first_ = false;
  }
  // At every unit, before the first copy of its K or V.
  PAGODA_DEVICE void wait_for_q() {
    if (!is_used || !is_first_) return;
    storage_.q_requested.wait(0);
    is_first_ = false;
  }

 private:
  Storage<Config>& storage_;
  bool is_first_ = true;
};

}  // namespace pagoda::mha_sm90
