// Epilogue of a consumer with wgmma: normalises O and stores it, with LSE and row maximum. Blocks
// of tokens are staged in shared memory as T and stored by TMA where all exist, else row by row;
// everything else is stored from registers.
#pragma once

#include <cstdint>

#include "arch/fence.hpp"
#include "arch/ldmatrix.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/tma.hpp"
#include "arch/warp.hpp"
#include "kernels/common/row_epilogue.hpp"
#include "kernels/common/row_lines.hpp"
#include "kernels/mha_sm90/roles/consumer.hpp"

namespace pagoda::mha_sm90 {

using kernels::finalize_row;
using kernels::RowResult;
using kernels::scaled_pair;
using kernels::store_lse_and_max;
using kernels::store_pair;

// All threads of a consumer warpgroup.
template <class Config>
class Epilogue {
 public:
  using Ops = Operands<Config>;
  using Out = typename Ops::Out;
  using Row = mha_sm90::Row<Config>;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int staging_columns = tile.stages_o_in_q() ? tile.depth_qk : tile.depth_vo;

  PAGODA_DEVICE Epilogue(const AttentionParams& params, int warpgroup)
      : params_(params), warpgroup_(warpgroup) {}

  // The factors of O in the rows of a thread. Stores LSE and row maximum. It needs no O: it runs
  // under the last product.
  PAGODA_DEVICE void finish(const Work& work, const Row (&rows)[2], float (&factors)[2]) const {
    // With O of 256 columns it would spill; latent rows have more registers.
    if ((tile.depth_vo < 256 || tile.is_latent) && kernels::wants_only_o(params_)) {
      PAGODA_UNROLL
      for (int r = 0; r < 2; ++r) {
        factors[r] = kernels::o_factor(params_, work, rows[r].is_valid, rows[r].sums);
      }
      return;
    }
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const RowResult result =
          finalize_row(params_, work, rows[r].q_head, rows[r].is_valid, rows[r].sums, rows[r].max);
      factors[r] = result.end.o_factor;
      if (rows[r].is_written && arch::lane_idx() % 4 == 0 && is_first_part()) {
        store_lse_and_max(params_, work, rows[r].token, rows[r].q_head, result);
      }
    }
  }

  // Stores O. `staging`: Consumer::out_smem(). This warp's products have read Q.
  PAGODA_DEVICE void store(const Work& work, const Row (&rows)[2], const float (&factors)[2],
                           const float (&o)[tile.out_columns() / 2], arch::SharedPtr<Out> staging) {
    if constexpr (tile.rows == RowKind::kTokens) {
      // A work tile without keys has no Q: the stage may already hold the next one's.
      if (params_.is_out_by_tma && work.walk.num_tiles > 0) {
        const int32_t num_tokens = work.num_tokens - warpgroup_ * block_tokens();
        if (num_tokens <= 0) return;
        stage(factors, o, staging);
        if (num_tokens >= block_tokens()) {
          store_by_tma(work, staging);
        } else {
          store_rows(work, num_tokens, staging);
        }
        return;
      }
    }
    if constexpr (tile.is_latent) {
      if (kernels::has_whole_lines<Out, tile.depth_vo>(params_)) {
        PAGODA_UNROLL
        for (int r = 0; r < 2; ++r) {
          kernels::store_lines(kernels::out_row<Out>(params_, work, rows[r]), first_column(), o,
                               2 * r, factors[r], rows[r].is_written);
        }
      } else {
        store_converted(work, rows, factors, o, staging);
      }
    } else if (kernels::is_out_of<Out>(params_)) {
      store_from_registers(work, rows, factors, o);
    } else {
      store_converted(work, rows, factors, o, staging);
    }
  }

 private:
  // The columns of O that this warpgroup has begin here; the first part stores what a row has one
  // of.
  [[nodiscard]] PAGODA_DEVICE int32_t first_column() const {
    return tile.is_latent ? warpgroup_ * tile.out_columns() : 0;
  }
  [[nodiscard]] PAGODA_DEVICE bool is_first_part() const {
    return !tile.is_latent || warpgroup_ == 0;
  }
  [[nodiscard]] PAGODA_DEVICE int32_t block_tokens() const {
    return tokens_of_consumer<Config>(params_);
  }

  PAGODA_DEVICE void store_from_registers(const Work& work, const Row (&rows)[2],
                                          const float (&factors)[2],
                                          const float (&o)[tile.out_columns() / 2]) {
    const int32_t first = first_column() + 2 * (arch::lane_idx() % 4);
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) {
      if (!rows[r].is_written) continue;
      const arch::GlobalPtr<Out> row = kernels::out_row<Out>(params_, work, rows[r]);
      const bool is_aligned = row.address() % 4 == 0;
      PAGODA_UNROLL
      for (int j = 0; j < tile.out_columns() / 8; ++j) {
        if (8 * j + first < params_.dim_vo) {
          store_pair(row, 8 * j + first,
                     scaled_pair<Out>(o[4 * j + 2 * r], o[4 * j + 2 * r + 1], factors[r]),
                     is_aligned);
        }
      }
    }
  }

  // O of another dtype than Out. `staging` has room for the elements of one row of a thread.
  PAGODA_DEVICE void store_converted(const Work& work, const Row (&rows)[2],
                                     const float (&factors)[2],
                                     const float (&o)[tile.out_columns() / 2],
                                     arch::SharedPtr<Out> staging) {
    if (work.walk.num_tiles == 0) {  // no Q: the memory may already hold the next work tile's
      store_zeros(work, rows);
      return;
    }
    constexpr int count = tile.out_columns() / 4;
    static_assert(tile.column_parts() * count * sizeof(float) * kWarpgroup <=
                  kRows * staging_columns * sizeof(Out));
    sync_warpgroup(warpgroup_);  // the products of all four warps have read Q
    const int32_t thread = arch::thread_idx() % kWarpgroup;
    const int32_t first = first_column() + 2 * (arch::lane_idx() % 4);
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) {
      if (!rows[r].is_written) continue;
      kernels::store_converted<count, kWarpgroup>(
          params_, kernels::out_offset(params_, work, rows[r]), factors[r],
          staging.template as<float>() + thread,
          [&](int i) { return o[i / 2 * 4 + 2 * r + i % 2]; },
          [first](int i) { return i / 2 * 8 + first + i % 2; });
    }
    if constexpr (tile.stages_o_in_q()) {
      arch::fence_proxy_async_shared();  // orders this thread's stores before TMA loads the next Q
    }
  }
  PAGODA_DEVICE void store_zeros(const Work& work, const Row (&rows)[2]) {
    PAGODA_UNROLL
    for (const Row& row : rows) {
      if (!row.is_written) continue;
      const int64_t offset = kernels::out_offset(params_, work, row);
      const int32_t begin = first_column(), end = begin + tile.out_columns();
      PAGODA_NO_UNROLL
      for (int32_t column = begin + arch::lane_idx() % 4; column < params_.dim_vo && column < end;
           column += 4) {
        kernels::store_element(params_, offset + column, 0);
      }
    }
  }

  // O as Out in shared memory, for all threads of the warpgroup and for TMA.
  PAGODA_DEVICE void stage(const float (&factors)[2], const float (&o)[tile.depth_vo / 2],
                           arch::SharedPtr<Out> staging) {
    // Memory of its own: the lane that has issued the last store of O waits until TMA has read it.
    if constexpr (!tile.stages_o_in_q()) arch::bulk_wait_group_read<0>();
    // The products of all four warps have read Q, or that lane has waited.
    sync_warpgroup(warpgroup_);
    const int lane = arch::lane_idx(), warp = arch::warp_idx() % 4;
    // stmatrix x4: 16 rows and 16 columns; lane i gives the address of row i % 8 of matrix i / 8.
    const int row = 16 * warp + lane % 16;
    PAGODA_UNROLL
    for (int j = 0; j < tile.depth_vo / 8; j += 2) {
      const int column = 8 * j + 8 * (lane / 16);
      const uint32_t offset = Ops::out_panel_offset(row, column);
      const uint32_t address = swizzle_address(staging.address() + offset, tile.out_swizzle());
      uint32_t words[4];
      PAGODA_UNROLL
      for (int m = 0; m < 4; ++m) {
        const int i = 4 * (j + m / 2) + 2 * (m % 2);
        words[m] = scaled_pair<Out>(o[i], o[i + 1], factors[m % 2]);
      }
      arch::stmatrix<4>(staging + static_cast<int32_t>((address - staging.address()) / sizeof(Out)),
                        words);
    }
    arch::fence_proxy_async_shared();  // orders this thread's stores of O before TMA reads them
    sync_warpgroup(warpgroup_);  // every thread has stored its part of O and executed the fence
  }

  // The first `num_tokens` tokens of a block that has fewer than fit it: the memory behind them may
  // be the next sequence's. Rows of O are aligned to 16 bytes, as TMA wants them.
  PAGODA_DEVICE void store_rows(const Work& work, int32_t num_tokens,
                                arch::SharedPtr<Out> staging) const {
    constexpr int columns = 16 / sizeof(Out), chunks = tile.depth_vo / columns;
    const int32_t first_row = work.memory_row + work.first_token + warpgroup_ * block_tokens();
    const arch::GlobalPtr<Out> to =
        params_.out_data.template as<Out>() +
        params_.out_rows.offset(work.sequence, first_row, work.first_head);
    int32_t num_rows = num_tokens;
    if constexpr (kernels::kMayPackHeads<Config>) num_rows *= params_.row_block.heads;
    PAGODA_NO_UNROLL
    for (int i = arch::thread_idx() % kWarpgroup; i < num_rows * chunks; i += kWarpgroup) {
      const int row = i / chunks, column = i % chunks * columns;
      if (column >= params_.dim_vo) continue;
      const uint32_t from = swizzle_address(staging.address() + Ops::out_panel_offset(row, column),
                                            tile.out_swizzle());
      const auto words =
          arch::load((staging + static_cast<int32_t>((from - staging.address()) / sizeof(Out)))
                         .template as<const arch::Words<4>>());
      int64_t offset = 0;
      if constexpr (kernels::kMayPackHeads<Config>) {
        const kernels::TokenAndHead of = params_.row_block.at(row);
        offset = params_.out_rows.offset(0, of.token, of.head);
      } else {
        offset = row * params_.out_rows.row_stride;
      }
      arch::store((to + (offset + column)).template as<arch::Words<4>>(), words);
    }
  }

  // When this returns, TMA may still be reading from `staging`.
  PAGODA_DEVICE void store_by_tma(const Work& work, arch::SharedPtr<Out> staging) {
    const int warp = arch::warp_idx() % 4;
    const bool is_ragged = params_.sequences.cu_rows != nullptr;
    const int32_t first =
        work.first_token + warpgroup_ * block_tokens() + (is_ragged ? work.memory_row : 0);
    // The lane that later arrives at q empty for this warp (Consumer::release_q) must issue the
    // store: bulk_wait_group_read waits for the executing thread's copies only.
    const int32_t issues = warp == 0 ? arch::elect_one() : 0;
    PAGODA_UNROLL
    for (int column = 0; column < tile.depth_vo; column += Ops::out_chunk) {
      arch::tma_store<4>(issues, params_.out,
                         {{column, work.first_head, first, is_ragged ? 0 : work.sequence}},
                         staging + column * kRows);
    }
    arch::bulk_commit_group();
  }

  const AttentionParams& params_;
  int warpgroup_;
};

}  // namespace pagoda::mha_sm90
