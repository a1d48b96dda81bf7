// Stream-K partition of packed rows: the KV tiles of all row tiles of a batch are numbered
// consecutively, and every CTA takes an equal interval of the numbers.
//
//   order: sequence, KV head, head tile, token tile, KV tile (ascending keys, fastest)
//   CTA i takes [i, i + 1) * tiles_per_cta
//
// In kernels whose work tiles take long to begin (kv_buffer), no CTA takes parts of two row tiles
// where there are enough CTAs: each row tile counts as a multiple of tiles_per_cta
// (find_row_tile_start).
//
// Where a pair of CTAs computes each work tile, the pair takes one interval: both CTAs find the
// same work tiles, without communication, and "CTA" below means the pair.
//
// A row tile that crosses the limit of an interval is split: each CTA stores a partial result, and
// the last one to finish merges them (split_rows.hpp). find_stream_k_start finds where a CTA
// starts.
#pragma once

#include <cstdint>

#include "arch/quotient.hpp"
#include "arch/thread.hpp"
#include "core/target.hpp"
#include "kernels/common/work_tile.hpp"

namespace pagoda::kernels {

// Whether the head tiles of a KV head have a CTA each, which take one interval together: they read
// the same keys at the same time, all but the first from L2. Else they are row tiles like others.
template <class Config>
PAGODA_HOST_DEVICE constexpr bool has_head_tile_ctas() {
  if constexpr (requires { Config::tile.is_latent; }) return Config::tile.is_latent;
  return false;
}

// The index of this CTA, or group of CTAs, in the partition, and the number of intervals.
template <class Config>
PAGODA_DEVICE int32_t stream_k_index(const AttentionParams& params) {
  const int32_t index = static_cast<int32_t>(arch::block_idx().x) / ctas_of_tile<Config>();
  if constexpr (!has_head_tile_ctas<Config>()) return index;
  return arch::quotient(index, packed_rows<Config>(params.group).head_tiles);
}
template <class Config>
PAGODA_DEVICE int32_t stream_k_count(const AttentionParams& params) {
  const int32_t count = static_cast<int32_t>(arch::grid_dim().x) / ctas_of_tile<Config>();
  if constexpr (!has_head_tile_ctas<Config>()) return count;
  return arch::quotient(count, packed_rows<Config>(params.group).head_tiles);
}

// The row tiles of one sequence. All have the same KV tiles: those that any of its rows sees.
struct SequenceTiles {
  int32_t num_rows = 0, valid_rows = 0;
  int32_t num_keys = 0, q_position = 0;
  mask::KVTileRange walk{};
  int32_t kv_tiles = 0;   // of a row tile; 1 where no key is visible, because O is still written
  int32_t row_tiles = 0;  // 0 where the sequence belongs to the plan's other launch

  PAGODA_HOST_DEVICE int32_t tiles() const { return row_tiles * kv_tiles; }
  // With kv_tiles rounded up to a multiple of `count`; the walk stays as it is.
  [[nodiscard]] PAGODA_DEVICE SequenceTiles padded(int32_t count) const {
    SequenceTiles result = *this;
    result.kv_tiles = (arch::quotient(kv_tiles - 1, count) + 1) * count;
    return result;
  }
};

template <class Config>
PAGODA_DEVICE SequenceTiles sequence_tiles(const AttentionParams& params, int32_t b) {
  const Sequences& sequences = params.sequences;
  SequenceTiles result;
  result.num_rows = sequences.num_rows(b);
  if (result.num_rows == 0 || params.launch_rows(b) > params.max_rows) return result;
  result.num_keys = static_cast<int32_t>(sequences.keys.num_keys(b));
  result.valid_rows = sequences.num_valid_rows(b);
  result.q_position = sequences.q_position(b, result.num_keys);
  if (result.valid_rows > 0) {
    result.walk = kv_tiles_of<Config>(
        params, mask::RowTile{b, result.num_keys, result.q_position, 0, result.valid_rows});
  }
  const PackedRows packed = packed_rows<Config>(params.group);
  result.kv_tiles = result.walk.num_tiles > 0 ? result.walk.num_tiles : 1;
  const int32_t head_tiles = has_head_tile_ctas<Config>() ? 1 : packed.head_tiles;
  result.row_tiles =
      params.num_kv_heads * head_tiles * (arch::quotient(result.num_rows - 1, packed.tokens) + 1);
  return result;
}

// Where a CTA starts or continues in its interval. All its threads compute the first start
// together.
struct StreamKStart {
  int32_t begin = 0, end = 0;  // the CTA's KV tiles, counted over the whole batch
  int32_t tiles_per_cta = 1;
  int32_t sequence = 0;        // the one that holds tile `begin`
  int32_t sequence_begin = 0;  // first tile of that sequence
  SequenceTiles tiles{};       // of that sequence
};

// The work tiles of this CTA's interval: one for every row tile that the interval touches.
template <class Config>
class StreamKWork {
 public:
  PAGODA_DEVICE StreamKWork(const AttentionParams& params, const StreamKStart& start)
      : params_(params),
        start_(start),
        position_(start.begin),
        sequence_(start.sequence),
        sequence_begin_(start.sequence_begin),
        tiles_(start.tiles) {}

  // False: no work tile is left for this CTA.
  PAGODA_DEVICE bool next(Work& work) {
    while (position_ < start_.end) {
      while (position_ >= sequence_begin_ + tiles_.tiles()) {
        sequence_begin_ += tiles_.tiles();
        tiles_ = sequence_tiles<Config>(params_, ++sequence_);
      }
      if (make(work)) return true;
    }
    return false;
  }
  // The start of another StreamKWork that continues after this one.
  [[nodiscard]] PAGODA_DEVICE StreamKStart rest() const {
    return {position_, start_.end, start_.tiles_per_cta, sequence_, sequence_begin_, tiles_};
  }

 private:
  // KV tiles from position_ to the end of their row tile, or of the CTA's interval.
  PAGODA_DEVICE bool make(Work& work) {
    const int32_t row_tile = arch::quotient(position_ - sequence_begin_, tiles_.kv_tiles);
    const int32_t begin = sequence_begin_ + row_tile * tiles_.kv_tiles;  // of the row tile
    const int32_t end = begin + tiles_.kv_tiles;
    if (params_.is_batch_invariant) {  // the CTA that has its first tile computes all of a row tile
      const bool is_mine = position_ == begin;
      if (is_mine) {
        set_rows(row_tile, work);
        work.walk = tiles_.walk;
        work.num_splits = 1;
      }
      position_ = end;
      return is_mine;
    }
    const int32_t stop = end < start_.end ? end : start_.end;
    set_rows(row_tile, work);
    const int32_t first = position_ - begin, last = stop - begin;
    work.walk = tiles_.walk;
    if (tiles_.walk.num_tiles > 0) {
      const int32_t past = tiles_.walk.column(last);
      work.walk = tiles_.walk.part(tiles_.walk.column(first),
                                   past < tiles_.walk.end_column ? past : tiles_.walk.end_column);
    }
    set_split(begin, end, work);
    position_ = stop;
    return true;
  }

  // Row tiles are numbered by token tile (fastest), head tile, KV head.
  PAGODA_DEVICE void set_rows(int32_t row_tile, Work& work) const {
    const PackedRows packed = packed_rows<Config>(params_.group);
    const int32_t token_tiles = arch::quotient(tiles_.num_rows - 1, packed.tokens) + 1;
    const int32_t heads = arch::quotient(row_tile, token_tiles);  // KV head and head tile
    work.sequence = sequence_;
    int32_t head_tile = 0;
    if constexpr (has_head_tile_ctas<Config>()) {
      work.kv_head = heads;
      head_tile = cta_of_head_tiles(packed.head_tiles);
    } else {
      work.kv_head = arch::quotient(heads, packed.head_tiles);
      head_tile = heads - work.kv_head * packed.head_tiles;
    }
    work.first_head = work.kv_head * params_.group + head_tile * packed.heads;
    const int32_t heads_left = params_.group - head_tile * packed.heads;
    work.num_heads = heads_left < packed.heads ? heads_left : packed.heads;
    work.first_token = (row_tile - heads * token_tiles) * packed.tokens;
    const int32_t left = tiles_.num_rows - work.first_token;
    work.num_tokens = left < packed.tokens ? left : packed.tokens;
    work.valid_tokens = valid_of_tile(tiles_.valid_rows - work.first_token, work.num_tokens);
    work.memory_row = params_.sequences.first_row(sequence_);
    work.rows = mask::RowTile{sequence_, tiles_.num_keys, tiles_.q_position, work.first_token,
                              work.valid_tokens};
  }

  // This CTA's index among the `ctas` of an interval.
  static PAGODA_DEVICE int32_t cta_of_head_tiles(int32_t ctas) {
    const auto index = static_cast<int32_t>(arch::block_idx().x);
    return index - arch::quotient(index, ctas) * ctas;
  }

  // A CTA has at most two splits, hence two slots. Slot 0: the row tile began before the interval,
  // or with it. Slot 1: it begins inside the interval and ends after it.
  PAGODA_DEVICE void set_split(int32_t begin, int32_t end, Work& work) const {
    const int32_t per_cta = start_.tiles_per_cta;
    const int32_t first_cta = arch::quotient(begin, per_cta);
    work.num_splits = arch::quotient(end - 1, per_cta) - first_cta + 1;
    // Intervals are in the order of the CTAs.
    work.split = stream_k_index<Config>(params_) - first_cta;
    work.first_slot = 2 * first_cta + (begin == first_cta * per_cta ? 0 : 1);
    work.next_slot = 2 * (first_cta + 1);
    work.slot_step = 2;
    if constexpr (has_head_tile_ctas<Config>()) {
      const int32_t ctas = packed_rows<Config>(params_.group).head_tiles;
      const int32_t cta = cta_of_head_tiles(ctas);
      work.first_slot = work.first_slot * ctas + cta;
      work.next_slot = work.next_slot * ctas + cta;
      work.slot_step *= ctas;
    }
  }

  const AttentionParams& params_;
  StreamKStart start_;
  int32_t position_;
  int32_t sequence_;
  int32_t sequence_begin_;
  SequenceTiles tiles_;
};

}  // namespace pagoda::kernels
