// Work tiles made with few divisions, because all threads of a CTA wait for the one that makes
// them: the work tile of a prefill CTA, and the first one of a CTA where the batch is one sequence,
// which is the stream-K partition (stream_k.hpp) without sums over a batch.
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "arch/thread.hpp"
#include "kernels/common/stream_k.hpp"
#include "schedule/tile_grid.hpp"

namespace pagoda::kernels::kv_buffer {

// a / b, a below 2^21: (a + 0.5) / b is further from an integer than its rounding error.
PAGODA_DEVICE int32_t small_quotient(int32_t a, int32_t b) {
  if (a < b) return 0;
  return static_cast<int32_t>((static_cast<float>(a) + 0.5F) * (1 / static_cast<float>(b)));
}

// One CTA for every entry of the grid, like TransientScheduler; without splits: with few divisions.
template <int tile_rows>
class CtaScheduler {
 public:
  PAGODA_DEVICE explicit CtaScheduler(const schedule::TileGrid& grid) : grid_(grid) {}

  PAGODA_DEVICE bool next(schedule::TileCoord& tile) {
    if (is_done_) return false;
    is_done_ = true;
    if (grid_.num_splits == 1 && arch::grid_dim().x < 1 << 21) {
      schedule::TileGrid grid = grid_;
      grid.tile_rows = tile_rows;  // as a constant
      tile = grid.unsplit(index(), small_quotient);
    } else {
      tile = grid_.at(index());
    }
    return tile.exists();
  }
  [[nodiscard]] static PAGODA_DEVICE int32_t index() {
    return static_cast<int32_t>(arch::block_idx().x);
  }

 private:
  const schedule::TileGrid& grid_;
  bool is_done_ = false;
};

// The CTA's interval where the batch is one sequence: no sums.
template <class Config>
PAGODA_DEVICE StreamKStart start_of_one_sequence(const AttentionParams& params) {
  const SequenceTiles tiles = sequence_tiles<Config>(params, 0);
  const int32_t total = tiles.tiles(), ctas = arch::grid_dim().x;
  const int32_t per_cta = (total - 1) / ctas + 1;
  const int32_t begin = arch::block_idx().x * per_cta;
  if (begin >= total) return {.tiles_per_cta = per_cta};
  return {begin, begin < total - per_cta ? begin + per_cta : total, per_cta, 0, 0, tiles};
}

// The first work tile of a batch of one sequence, by one thread, and where StreamKWork continues.
// False: the CTA has none.
template <class Config>
PAGODA_DEVICE bool make_first_work(const AttentionParams& params, Work& work, StreamKStart& rest) {
  const Sequences& sequences = params.sequences;
  const auto num_keys = static_cast<int32_t>(sequences.keys.num_keys(0));
  const int32_t num_rows = sequences.num_rows(0);
  if (num_rows != 1 || params.group > Config::tile.BM || params.is_batch_invariant) {
    StreamKWork<Config> work_tiles(params, start_of_one_sequence<Config>(params));
    const bool exists = work_tiles.next(work);
    rest = work_tiles.rest();
    return exists;
  }
  SequenceTiles& tiles = rest.tiles;
  tiles.num_rows = 1;
  tiles.num_keys = num_keys;
  tiles.valid_rows =
      sequences.valid_rows != nullptr ? arch::load_read_only(sequences.valid_rows) : 1;
  tiles.q_position = sequences.q_positions != nullptr ? arch::load_read_only(sequences.q_positions)
                                                      : num_keys - tiles.valid_rows;
  if (tiles.valid_rows > 0) {
    tiles.walk = kv_tiles_of<Config>(
        params, mask::RowTile{0, num_keys, tiles.q_position, 0, tiles.valid_rows});
  }
  tiles.kv_tiles = tiles.walk.num_tiles > 0 ? tiles.walk.num_tiles : 1;
  tiles.row_tiles = params.num_kv_heads;
  const int32_t total = tiles.tiles(), ctas = arch::grid_dim().x;
  const bool is_small = total < 1 << 21;
  const auto divide = [is_small](int32_t a, int32_t b) {
    return is_small ? small_quotient(a, b) : a / b;
  };
  const int32_t per_cta = divide(total - 1, ctas) + 1;
  const int32_t begin = arch::block_idx().x * per_cta;  // of the CTA's interval
  if (begin >= total) return false;
  const int32_t end = begin < total - per_cta ? begin + per_cta : total;
  work.kv_head = divide(begin, tiles.kv_tiles);
  const int32_t row_begin = work.kv_head * tiles.kv_tiles;
  const int32_t row_end = row_begin + tiles.kv_tiles;
  const int32_t stop = row_end < end ? row_end : end;
  rest.begin = stop;
  rest.end = end;
  rest.tiles_per_cta = per_cta;

  work.first_head = work.kv_head * params.group;
  work.num_heads = params.group;
  work.num_tokens = 1;
  work.valid_tokens = tiles.valid_rows > 0 ? 1 : 0;
  work.memory_row = sequences.first_row(0);
  work.rows = mask::RowTile{0, tiles.num_keys, tiles.q_position, 0, work.valid_tokens};
  work.walk = tiles.walk;
  if (tiles.walk.num_tiles > 0) {
    const int32_t past = tiles.walk.column(stop - row_begin);
    work.walk = tiles.walk.part(tiles.walk.column(begin - row_begin),
                                past < tiles.walk.end_column ? past : tiles.walk.end_column);
  }
  const int32_t first_cta = per_cta == 1 ? row_begin : divide(row_begin, per_cta);
  const int32_t last_cta = per_cta == 1 ? row_end - 1 : divide(row_end - 1, per_cta);
  work.num_splits = last_cta - first_cta + 1;
  work.split = arch::block_idx().x - first_cta;
  work.first_slot = 2 * first_cta + (row_begin == first_cta * per_cta ? 0 : 1);
  work.next_slot = 2 * (first_cta + 1);
  work.slot_step = 2;
  return true;
}

}  // namespace pagoda::kernels::kv_buffer
