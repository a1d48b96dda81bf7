// LatentWork: the work tiles of a CTA of latent rows, those of StreamKWork (stream_k.hpp), in the
// calls that set_latent_work() (latent_launch.hpp) names. One warp finds them, without a barrier of
// the CTA: the first is known 3,800 cycles after the CTA's start; by the general search after
// 11,800, a quarter of a short call (notes/latent.md).
//
// The batch is divided in units, of which a CTA has an interval: KV tiles, or, where CTAs share the
// merge of a row tile (SharedMerge), its splits, one a CTA, because no CTA may have parts of two
// row tiles. The splits of a row tile are as long as each other, those of all as long as the number
// of CTAs allows.
//
// Row tiles that read the same keys have CTAs side by side, which take one interval together, so
// that all but the first read them from L2: the head tiles of a token, and, where all sequences
// have as many tokens, the row tiles of all tokens (row_tiles_side_by_side(), latent_launch.cpp).
#pragma once

#include <cstdint>

#include "arch/quotient.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "kernels/common/kv_buffer/decode_work.hpp"
#include "kernels/common/stream_k_start.hpp"
#include "kernels/common/work_tile.hpp"
#include "kernels/mha_sm90/schedule.hpp"

namespace pagoda::mha_sm90 {

template <class Config>
class LatentWork {
 public:
  static constexpr int32_t BN = Config::tile.BN;

  // Whether the call's work tiles are found here.
  static PAGODA_DEVICE bool is_used(const AttentionParams& params) {
    return params.ctas_per_kv_head > 0;
  }

  // Every lane of a warp calls it.
  PAGODA_DEVICE explicit LatentWork(const AttentionParams& params) : params_(params) {
    const auto cta = static_cast<int32_t>(arch::block_idx().x);
    index_ = params.decode.by_row_tiles.quotient(cta);
    side_ = cta - index_ * params.decode.token_tiles;
    const int32_t head_tiles = kernels::packed_rows<Config>(params.group).head_tiles;
    side_tokens_ = arch::quotient(params.decode.token_tiles, head_tiles);
    token_tile_ = arch::quotient(side_, head_tiles);
    head_tile_ = side_ - token_tile_ * head_tiles;
    const int32_t ctas = params.ctas_per_kv_head;
    Sequence own;
    if (has_lane_each() && arch::lane_idx() < params.sequences.batch) own = load(arch::lane_idx());
    Sums sums = sums_of_lane(own);
    int32_t total = kernels::sum_of_warp(sums.units);
    const int32_t row_tiles = kernels::sum_of_warp(sums.row_tiles);
    const auto longest =
        static_cast<int32_t>(arch::reduce_max(static_cast<uint32_t>(sums.longest)));
    const bool are_as_long = int64_t{row_tiles} * longest == total && row_tiles > 0;
    const int32_t even = kernels::tiles_of_cta(total, ctas);
    if (params.is_merge_shared && are_as_long) {
      split_tiles_ = kernels::tiles_of_cta(longest, arch::quotient(ctas, row_tiles));
      const int32_t splits = kernels::tiles_of_cta(longest, split_tiles_);
      sums.units = sums.row_tiles * splits;
      total = row_tiles * splits;
    } else if (params.is_merge_shared) {
      // A split of `most` leaves a CTA for the rest of every row tile. Most often `even` fits.
      int32_t most = kernels::tiles_of_cta(total, ctas - row_tiles);
      PAGODA_NO_UNROLL
      for (int32_t least = even, next = even;; next = (least + most) / 2) {
        split_tiles_ = next;
        sums = sums_of_lane(own);
        total = kernels::sum_of_warp(sums.units);
        if (total <= ctas) {
          most = next;
        } else {
          least = next + 1;
        }
        if (total <= ctas && least >= most) break;
      }
    } else {
      units_of_cta_ = even;
      if (are_as_long) {
        units_of_cta_ = kernels::whole_row_tiles(even, row_tiles, longest, ctas,
                                                 kernels::kTilesOfSplit<Config>);
      }
    }
    position_ = index_ * units_of_cta_;
    end_ = position_ < total - units_of_cta_ ? position_ + units_of_cta_ : total;
    const int32_t past = kernels::inclusive_sum_of_warp(sums.units);
    // As many lanes as have all their units before this CTA's.
    const auto lane = static_cast<int32_t>(arch::reduce_add(past <= position_ ? 1U : 0U));
    if (lane == 32) return;  // position_ is past the end
    sequence_begin_ = arch::shuffle(past - sums.units, lane);
    sequence_ = load(lane * sequences_of_lane());
  }

  // Of one lane. False: no work tile is left for this CTA.
  PAGODA_DEVICE bool next(Work& work) {
    while (position_ < end_) {
      while (position_ >= sequence_begin_ + sequence_.units()) {
        sequence_begin_ += sequence_.units();
        sequence_ = load(sequence_.index + 1);
      }
      if (make(work)) return true;
    }
    return false;
  }

 private:
  // Every row tile of a sequence has the KV tiles that any of its rows sees; one where there are
  // none, because O is still written. Those that are side by side count as one.
  struct Sequence {
    int32_t index = 0, num_rows = 0, num_keys = 0;
    int32_t row_tiles = 0, kv_tiles = 1;
    int32_t units_of_row_tile = 1;

    [[nodiscard]] PAGODA_DEVICE int32_t units() const { return row_tiles * units_of_row_tile; }
  };
  struct Sums {
    int32_t units = 0, row_tiles = 0, longest = 0;
  };

  // A lane has neighbouring sequences.
  [[nodiscard]] PAGODA_DEVICE int32_t sequences_of_lane() const {
    return (params_.sequences.batch - 1) / 32 + 1;
  }
  [[nodiscard]] PAGODA_DEVICE bool has_lane_each() const { return params_.sequences.batch <= 32; }
  // `own`: its sequence, if each lane has at most one; the search for splits asks repeatedly.
  [[nodiscard]] PAGODA_DEVICE Sums sums_of_lane(const Sequence& own) const {
    if (has_lane_each()) {
      return {own.row_tiles * units_of_row_tile(own.kv_tiles), own.row_tiles, own.kv_tiles};
    }
    const int32_t begin = arch::lane_idx() * sequences_of_lane();
    const int32_t batch = params_.sequences.batch;
    const int32_t end = begin + sequences_of_lane() < batch ? begin + sequences_of_lane() : batch;
    Sums sums;
    PAGODA_NO_UNROLL
    for (int32_t b = begin; b < end; ++b) {
      const Sequence sequence = load(b);
      sums.units += sequence.units();
      sums.row_tiles += sequence.row_tiles;
      sums.longest = sequence.kv_tiles > sums.longest ? sequence.kv_tiles : sums.longest;
    }
    return sums;
  }
  [[nodiscard]] PAGODA_DEVICE Sequence load(int32_t b) const {
    Sequence sequence{.index = b};
    sequence.num_keys = kernels::kv_buffer::num_keys(params_.decode, b);
    sequence.num_rows = params_.sequences.num_rows(b);
    const int32_t tokens = params_.decode.tile_tokens;
    sequence.row_tiles = sequence.num_rows > 0 ? 1 : 0;
    if (sequence.num_rows > tokens) {
      sequence.row_tiles = arch::quotient(sequence.num_rows - 1, tokens * side_tokens_) + 1;
    }
    sequence.kv_tiles = sequence.num_keys > BN ? (sequence.num_keys - 1) / BN + 1 : 1;
    sequence.units_of_row_tile = units_of_row_tile(sequence.kv_tiles);
    return sequence;
  }
  [[nodiscard]] PAGODA_DEVICE int32_t units_of_row_tile(int32_t kv_tiles) const {
    return split_tiles_ > 1 ? arch::quotient(kv_tiles - 1, split_tiles_) + 1 : kv_tiles;
  }

  // Units from position_ to the end of their row tile, or of the CTA's interval. False: the
  // sequence has fewer row tiles than are side by side.
  PAGODA_DEVICE bool make(Work& work) {
    const Sequence& of = sequence_;
    const int32_t before = position_ - sequence_begin_;
    const int32_t units = of.units_of_row_tile;
    const int32_t row_tile = of.row_tiles > 1 ? arch::quotient(before, units) : 0;
    const int32_t begin = sequence_begin_ + row_tile * units, end = begin + units;
    const int32_t stop = end < end_ ? end : end_;
    const int32_t from = position_;
    position_ = stop;
    const int32_t tokens = params_.decode.tile_tokens, heads = params_.row_block.heads;
    work.sequence = of.index;
    work.first_head = head_tile_ * heads;
    const int32_t heads_left = params_.group - work.first_head;
    work.num_heads = heads_left < heads ? heads_left : heads;
    work.first_token = (row_tile * side_tokens_ + token_tile_) * tokens;
    const int32_t left = of.num_rows - work.first_token;
    if (left <= 0) return false;
    work.num_tokens = left < tokens ? left : tokens;
    work.valid_tokens = work.num_tokens;
    work.memory_row = params_.sequences.first_row(of.index);
    const int32_t q_position = of.num_keys - of.num_rows;
    work.rows = mask::RowTile{of.index, of.num_keys, q_position, work.first_token, work.num_tokens};
    // A split of several KV tiles is one unit.
    const int32_t tiles = split_tiles_ > 1 ? arch::quotient(of.kv_tiles - 1, units) + 1 : 1;
    set_walk((from - begin) * tiles, (stop - begin) * tiles, work);
    work.num_splits = 1;
    if (from > begin || stop < end) set_split(begin, end, work);
    return true;
  }
  // KV tiles [first, last) of those of the work tile's rows, which may be fewer.
  PAGODA_DEVICE void set_walk(int32_t first, int32_t last, Work& work) const {
    // The keys that the last row sees, and those that all see.
    int32_t some = work.rows.seqlen_kv, all = some;
    if (params_.mask.interval.rule.right == 0) {
      all = work.rows.position(work.first_token) + 1;
      some = all + work.num_tokens - 1;
    }
    mask::KVTileRange& walk = work.walk;
    walk.tile_keys = BN;
    walk.start_column = first * BN;
    walk.end_column = some < last * BN ? some : last * BN;
    const int32_t keys = walk.end_column - walk.start_column, unmasked = all - walk.start_column;
    walk.num_tiles = keys > 0 ? (keys + BN - 1) / BN : 0;
    const int32_t whole = unmasked > 0 ? unmasked / BN : 0;
    walk.unmasked_end = whole < walk.num_tiles ? whole : walk.num_tiles;
  }
  // As StreamKWork::set_split().
  PAGODA_DEVICE void set_split(int32_t begin, int32_t end, Work& work) const {
    const int32_t sides = params_.decode.token_tiles;
    const int32_t first_cta = arch::quotient(begin, units_of_cta_);
    work.num_splits = arch::quotient(end - 1, units_of_cta_) - first_cta + 1;
    work.split = index_ - first_cta;
    const int32_t slot = 2 * first_cta + (begin == first_cta * units_of_cta_ ? 0 : 1);
    work.first_slot = slot * sides + side_;
    work.next_slot = 2 * (first_cta + 1) * sides + side_;
    work.slot_step = 2 * sides;
  }

  const AttentionParams& params_;
  int32_t index_, side_;  // the CTA's interval, and its number among the CTAs that take it
  int32_t side_tokens_, token_tile_, head_tile_;  // token tiles side by side; the CTA's tiles
  int32_t units_of_cta_ = 1;
  int32_t split_tiles_ = 1;         // merges are shared: most KV tiles of a split
  int32_t position_ = 0, end_ = 0;  // the CTA's units, counted over the batch
  Sequence sequence_{};
  int32_t sequence_begin_ = 0;
};

}  // namespace pagoda::mha_sm90
