// The correction warps and O: the wait for the MMAs that write it, and its two ways to global
// memory, by TMA from shared memory or from registers.
#pragma once

#include <cstdint>

#include "arch/mbarrier.hpp"
#include "arch/tcgen05.hpp"
#include "arch/thread.hpp"
#include "arch/tma.hpp"
#include "arch/warp.hpp"
#include "kernels/common/row_store.hpp"

namespace pagoda::kernels::sm100 {

// Waits until the MMAs of P V have written O; the MMA warp's commit arrives on `full`. The fence
// orders the wait before this thread's accesses to tensor memory.
PAGODA_DEVICE void wait_output(arch::MBarrier& full, uint32_t parity) {
  full.wait(parity);
  arch::tcgen05_fence_after_thread_sync();
}

// Stores columns [begin, end) of a block of O by TMA: panels of `panel_columns` columns and
// `block_rows` rows, staged in shared memory. `first_token`: of the block within the tile. All
// threads of the warpgroup call after a fence.proxy.async and a barrier; one lane of its first
// warp issues the copies and waits until TMA has read the staging memory. The same lane may then
// signal that Q may be loaded there.
template <int begin, int end, int panel_columns, int block_rows, class Out>
PAGODA_DEVICE void tma_store_panels(const AttentionParams& params, const Work& work,
                                    int32_t first_token, arch::SharedPtr<Out> staging) {
  const bool is_ragged = params.sequences.cu_rows != nullptr;
  const int32_t row = work.first_token + first_token + (is_ragged ? work.memory_row : 0);
  const int32_t issues = arch::warp_idx() % 4 == 0 ? arch::elect_one() : 0;
  PAGODA_UNROLL
  for (int column = begin; column < end; column += panel_columns) {
    if (column >= params.dim_vo) break;
    arch::tma_store<4>(issues, params.out,
                       {{column, work.first_head, row, is_ragged ? 0 : work.sequence}},
                       staging + (column - begin) * block_rows);
  }
  arch::bulk_commit_group();
  arch::bulk_wait_group_read<0>();
}

// Stores one row of O from registers: operator() takes `count` columns from `column` on. Out: the
// kernels' own type of O.
template <class Out, class Row>
class RowStore {
 public:
  PAGODA_DEVICE RowStore(const AttentionParams& params, const Work& work, const Row& row,
                         float factor)
      : params_(params), row_(row), offset_(out_offset(params, work, row)), factor_(factor) {}

  template <int count>
  PAGODA_DEVICE void operator()(int32_t column, const uint32_t (&o)[count]) const {
    if (!row_.is_written) return;
    if (is_out_of<Out>(params_)) {
      store_columns(params_.out_data.as<Out>() + offset_, params_.dim_vo, column, o, factor_);
    } else {
      PAGODA_UNROLL
      for (int i = 0; i < count; ++i) {
        if (column + i >= params_.dim_vo) break;
        const float value = factor_ == 0 ? 0 : core::bits_to_float(o[i]) * factor_;
        store_element(params_, offset_ + column + i, value);
      }
    }
  }

 private:
  const AttentionParams& params_;
  const Row& row_;
  int64_t offset_;
  float factor_;
};

}  // namespace pagoda::kernels::sm100
