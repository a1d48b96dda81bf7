// load_k, load_v: the roles that load K and V by TMA, a warp each. They load the KV tiles of a work
// tile from the last to the first, the order in which the consumers read them.
#pragma once

#include <cstdint>

#include "arch/debug.hpp"
#include "arch/fence.hpp"
#include "arch/thread.hpp"
#include "arch/tma.hpp"
#include "arch/warp.hpp"
#include "kernels/mha_sm90/q_before_kv.hpp"
#include "kernels/mha_sm90/schedule.hpp"
#include "kernels/mha_sm90/storage.hpp"
#include "operand/paged_row_indices.hpp"

namespace pagoda::mha_sm90 {

// Lets the scheduler lane draw the next work tile.
template <class Config>
PAGODA_DEVICE void draw_next(Storage<Config>& storage, int32_t elect) {
  if constexpr (Config::tile.rows == RowKind::kTokens) storage.draws.arrive_if(elect);
}

template <class Config, int page_size>
PAGODA_DEVICE void load_k(const AttentionParams& params, Storage<Config>& storage) {
  using Ops = Operands<Config>;
  using Indices = operand::PagedRowIndices<Config::tile.BN, page_size>;
  using Tile = operand::KVTmaTile<typename Ops::LoadedKV, Indices::k_issue_rows,
                                  Config::tile.loaded_depth(Config::tile.depth_qk),
                                  Config::tile.loaded_swizzle()>;
  auto ring = storage.k_producer();
  const int32_t elect = arch::elect_one();
  QBeforeKV<Config> order(storage);
  WorkReader reader(storage.work);
  for (; reader.next(); reader.release()) {
    order.wait_q_issued();
    const Work work = reader.work();
    const auto num_keys = static_cast<uint32_t>(work.rows.seqlen_kv);
    if (work.walk.num_tiles < Config::tile.draw_ahead) draw_next<Config>(storage, elect);
    for (int32_t tile = work.walk.num_tiles; tile-- > 0;) {
      const auto column = static_cast<uint32_t>(kernels::first_key_of<Config>(work.walk, tile));
      const auto rows = params.sequences.keys.template populate<Indices>(work.sequence, column);
      if (tile == Config::tile.draw_ahead - 1) draw_next<Config>(storage, elect);
      const Tile op{&params.k};
      const auto head = static_cast<uint32_t>(work.kv_head);
      ring.acquire_k();  // every consumer warp has released the stage
      arch::syncwarp();  // every lane has returned from that wait: TMA may overwrite the stage
      // Rows past the sequence's end keep what the stage held, or hold the rest of a page: they
      // only change scores that apply_mask replaces.
      if (Indices::is_whole(column, num_keys)) {
        const auto to = ring.get_k(elect);
        rows.template tma_copy_k<false>(op, to.smem, to.mbar, head, elect, params.kv_eviction);
      } else if constexpr (Config::tile.reads_whole_k_tiles()) {
        const auto to = ring.get_k(elect);
        rows.template tma_copy_k<true, Config::tile.BN, operand::MissingPages::kZero>(
            op, to.smem, to.mbar, head, elect, params.kv_eviction,
            Indices::k_num_valid_pages(column, num_keys));
      } else {
        const uint32_t pages = Indices::k_num_valid_pages(column, num_keys);
        const auto to = ring.get_k(elect, pages * Tile::bytes);
        rows.template tma_copy_k<true>(op, to.smem, to.mbar, head, elect, params.kv_eviction,
                                       pages);
      }
      ring.commit_step();
    }
  }
}

// Zeroes the rows of a tile of `depth` columns from `first` on, by a warp. P is 0 there, but V may
// hold NaN, and 0 * NaN is NaN.
template <class Config, int depth>
PAGODA_DEVICE void zero_rows(arch::SharedPtr<typename Config::T> tile, int first) {
  using Ops = Operands<Config>;
  constexpr int words = Ops::chunk / 8;  // of 16 bytes, in a row of a panel
  constexpr int panels = depth / Ops::chunk;
  const int rows = Config::tile.BN - first;
  for (int i = arch::lane_idx(); i < rows * words; i += 32) {
    PAGODA_UNROLL
    for (int panel = 0; panel < panels; ++panel) {
      // The swizzle permutes the words of a row; all are zeroed.
      const int at = (panel * Config::tile.BN + first) * Ops::chunk + i * 8;
      arch::store((tile + at).template as<arch::Words<4>>(), arch::Words<4>{{0, 0, 0, 0}});
    }
  }
}

template <class Config, int page_size>
PAGODA_DEVICE void load_v(const AttentionParams& params, Storage<Config>& storage) {
  using Ops = Operands<Config>;
  using Indices = operand::PagedRowIndices<Config::tile.BN, page_size>;
  using Tile = operand::KVTmaTile<typename Ops::LoadedKV, Indices::template v_issue_rows<1>,
                                  Config::tile.loaded_depth(Config::tile.depth_vo),
                                  Config::tile.loaded_swizzle()>;
  auto ring = storage.v_producer();
  const int32_t elect = arch::elect_one();
  uint32_t tail_phase = 0;
  QBeforeKV<Config> order(storage);
  WorkReader reader(storage.work);
  for (; reader.next(); reader.release()) {
    order.wait_q_issued();
    const auto num_keys = static_cast<uint32_t>(reader.work().rows.seqlen_kv);
    for (int32_t tile = reader.work().walk.num_tiles; tile-- > 0;) {
      const Work work = reader.work();  // here: 32 registers a producer hold no more
      const auto column = static_cast<uint32_t>(kernels::first_key_of<Config>(work.walk, tile));
      const auto rows = params.sequences.keys.template populate<Indices>(work.sequence, column);
      const Tile op{&params.v};
      const auto head = static_cast<uint32_t>(work.kv_head);
      ring.acquire_v();  // every warp that reads the stage has released it
      arch::syncwarp();  // every lane has returned from that wait: TMA may overwrite the stage
      if (column + Config::tile.BN <= num_keys) {
        const auto to = ring.get_v(elect);
        rows.template tma_copy_v<false>(op, to.smem, to.mbar, head, elect, params.kv_eviction);
      } else if constexpr (Config::tile.zeroes_v_in_registers()) {
        const auto to = ring.get_v(elect);
        rows.template tma_copy_v<true, 1, 0, operand::MissingPages::kZero>(
            op, to.smem, to.mbar, head, elect, params.kv_eviction,
            Indices::v_num_valid_pages(column, num_keys));
      } else {
        // The copies of the valid pages complete v_tail. Then this warp zeroes all rows past the
        // sequence's end, those of missing pages too, and arrives at v full.
        const uint32_t pages = Indices::v_num_valid_pages(column, num_keys);
        const auto to = ring.get_v_smem();
        storage.v_tail.arrive_expect_tx_if(elect, pages * Tile::bytes);
        rows.template tma_copy_v<true>(op, to, storage.v_tail, head, elect, params.kv_eviction,
                                       pages);
        storage.v_tail.wait(tail_phase);  // TMA: the bytes of the valid pages have landed
        tail_phase ^= 1U;
        zero_rows<Config, Config::tile.depth_vo>(to, static_cast<int>(num_keys - column));
        arch::fence_proxy_async_shared();  // orders this lane's zeros before wgmma reads them
        arch::syncwarp();                  // all lanes have stored zeros and executed the fence
        ring.pipeline.producer_mbar().arrive_if(elect);
      }
      ring.commit_step();
    }
  }
}

}  // namespace pagoda::mha_sm90
