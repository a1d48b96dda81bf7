// QBeforeKV: the first loads of Q of a CTA are issued before those of K and V. K and V fill the
// queues of the memory system at once; behind them Q took 12,000 cycles, before which no product
// can start (H200, one sequence of 64k keys). Only time depends on this order.
//
//   q_issued   1 arrival (fp8: 4): a warp that loads Q, when it has issued the loads of its first
//              work tile. load K and load V wait for it before their first copy.
#pragma once

#include "arch/mbarrier.hpp"
#include "arch/warp.hpp"
#include "kernels/mha_sm90/storage.hpp"

namespace pagoda::mha_sm90 {

// One object in every warp that loads Q, K or V of packed rows.
template <class Config>
class QBeforeKV {
 public:
  static constexpr bool is_used =
      Config::tile.rows == RowKind::kPacked && Config::tile.load != LoadKind::kGather;

  PAGODA_DEVICE explicit QBeforeKV(Storage<Config>& storage) : storage_(storage) {}

  // Called at every work tile, after its loads of Q are issued or where it needs none.
  PAGODA_DEVICE void arrive_q_issued() {
    if (!is_used || !is_first_) return;
    storage_.q_issued.arrive_if(arch::elect_one());
    is_first_ = false;
  }
  // Called at every work tile, before the first copy of its K or V.
  PAGODA_DEVICE void wait_q_issued() {
    if (!is_used || !is_first_) return;
    storage_.q_issued.wait(0);  // every warp that loads Q has issued its first loads
    is_first_ = false;
  }

 private:
  Storage<Config>& storage_;
  bool is_first_ = true;
};

}  // namespace pagoda::mha_sm90
