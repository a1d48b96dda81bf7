// load_latent: the role that loads the tiles of latent rows by TMA, a warp. K holds V. A stage is
// filled in parts, a panel of columns each, as the consumers release them.
#pragma once

#include <cstdint>

#include "kernels/mha_sm90/roles/load.hpp"

namespace pagoda::mha_sm90 {

template <class Config, int page_size>
class LoadLatent {
 public:
  using Ops = Operands<Config>;
  static constexpr TileConfig tile = Config::tile;
  using Indices = operand::PagedRowIndices<tile.BN, page_size>;
  using Tile = operand::KVTmaTile<typename Ops::LoadedKV, Indices::k_issue_rows,
                                  tile.panel_columns(), tile.swizzle>;

  PAGODA_DEVICE LoadLatent(const AttentionParams& params, Storage<Config>& storage)
      : params_(params), storage_(storage), ring_(storage.k_producer()) {}

  PAGODA_DEVICE void run() {
    QBeforeKV<Config> order(storage_);
    WorkReader reader(storage_.work);
    for (; reader.next(); reader.release()) {
      const Work work = reader.work();
      const auto num_keys = static_cast<uint32_t>(work.rows.seqlen_kv);
      head_ = static_cast<uint32_t>(work.kv_head);
      for (int32_t i = work.walk.num_tiles; i-- > 0;) {
        const auto column = static_cast<uint32_t>(kernels::first_key_of<Config>(work.walk, i));
        const auto rows = params_.sequences.keys.template populate<Indices>(work.sequence, column);
        order.wait_q_issued();  // the page ids of the first tile are on their way
        if (column + tile.BN <= num_keys) {
          load(rows);
        } else {
          load_last(rows, column, num_keys);
        }
        ring_.commit_step();
      }
    }
  }

 private:
  PAGODA_DEVICE void load(const Indices& rows) {
    pipeline::for_each_part<tile.k_parts()>([&]<int part>() {
      ring_.template acquire_k<part>();  // every consumer warp has released the part
      arch::syncwarp();  // every lane has returned from that wait: TMA may overwrite the part
      const auto to = ring_.template get_k<part>(elect_);
      rows.template tma_copy_k<false>(Tile{&params_.k}, to.smem, to.mbar, head_, elect_,
                                      params_.kv_eviction, Indices::k_pages, part * Tile::gran);
    });
  }

  // The tile in which the sequence ends. The copies of the valid pages complete v_tail. Then this
  // warp zeroes all rows past the sequence's end, those of missing pages too, and arrives at each
  // part: P is 0 there, but V may hold NaN, and 0 * NaN is NaN.
  PAGODA_DEVICE void load_last(const Indices& rows, uint32_t column, uint32_t num_keys) {
    const uint32_t pages = Indices::k_num_valid_pages(column, num_keys);
    storage_.v_tail.arrive_expect_tx_if(elect_, tile.k_parts() * pages * Tile::bytes);
    pipeline::for_each_part<tile.k_parts()>([&]<int part>() {
      ring_.template acquire_k<part>();  // every consumer warp has released the part
      arch::syncwarp();  // every lane has returned from that wait: TMA may overwrite the part
      rows.template tma_copy_k<true>(Tile{&params_.k}, ring_.template get_k_smem<part>(),
                                     storage_.v_tail, head_, elect_, params_.kv_eviction, pages,
                                     part * Tile::gran);
    });
    storage_.v_tail.wait(tail_phase_);  // TMA: the bytes of the valid pages have landed
    tail_phase_ ^= 1U;
    zero_rows<Config, tile.depth_qk>(ring_.get_k_smem(), static_cast<int>(num_keys - column));
    arch::fence_proxy_async_shared();  // orders this lane's zeros before wgmma reads them
    arch::syncwarp();                  // all lanes have stored zeros and executed the fence
    pipeline::for_each_part<tile.k_parts()>(
        [&]<int part>() { ring_.pipeline.template producer_mbar<part>().arrive_if(elect_); });
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  typename Ops::KProducer ring_;
  int32_t elect_ = arch::elect_one();
  uint32_t head_ = 0, tail_phase_ = 0;
};

}  // namespace pagoda::mha_sm90
