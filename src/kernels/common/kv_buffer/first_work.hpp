// Work tiles made with few divisions, because all threads of a CTA wait for the one that makes
// them: those of a prefill CTA and of a CTA that decodes one sequence.
#pragma once

#include <cstdint>

#include "arch/math.hpp"
#include "arch/memory.hpp"
#include "arch/thread.hpp"
#include "kernels/common/stream_k.hpp"
#include "schedule/tile_grid.hpp"

namespace pagoda::kernels::kv_buffer {

// a / b, a below 2^21: (a + 0.5) / b is further from an integer than its rounding error.
class SmallDivisor {
 public:
  PAGODA_DEVICE explicit SmallDivisor(int32_t divisor)
      : reciprocal_(arch::reciprocal_approx(static_cast<float>(divisor))) {}

  PAGODA_DEVICE int32_t quotient(int32_t a) const {
    return static_cast<int32_t>((static_cast<float>(a) + 0.5F) * reciprocal_);
  }

 private:
  float reciprocal_;
};
PAGODA_DEVICE int32_t small_quotient(int32_t a, int32_t b) {
  return a < b ? 0 : SmallDivisor(b).quotient(a);
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

// The work tile of a CTA where the batch is one sequence of one token: CTA i has split
// i % ctas_per_kv_head of KV head i / ctas_per_kv_head. One thread makes it. False: there is none.
template <class Config>
PAGODA_DEVICE bool make_only_work(const AttentionParams& params, Work& work) {
  const Sequences& sequences = params.sequences;
  const auto num_keys = static_cast<int32_t>(sequences.keys.num_keys(0));
  if (sequences.num_rows(0) == 0) return false;
  const int32_t valid_rows =
      sequences.valid_rows != nullptr ? arch::load_read_only(sequences.valid_rows) : 1;
  const int32_t q_position = sequences.q_positions != nullptr
                                 ? arch::load_read_only(sequences.q_positions)
                                 : num_keys - valid_rows;
  const int32_t cta = CtaScheduler<Config::tile.BM>::index();
  const int32_t ctas = params.ctas_per_kv_head;
  work.kv_head = small_quotient(cta, ctas);
  const int32_t first_cta = work.kv_head * ctas;
  work.split = cta - first_cta;

  work.first_head = work.kv_head * params.group;
  work.num_heads = params.group;
  work.num_tokens = 1;
  work.valid_tokens = valid_rows > 0 ? 1 : 0;
  work.memory_row = sequences.first_row(0);
  work.rows = mask::RowTile{0, num_keys, q_position, 0, work.valid_tokens};
  if (valid_rows > 0) work.walk = kv_tiles_of<Config>(params, work.rows);
  const mask::KVTileRange walk = work.walk;
  const int32_t tiles = walk.num_tiles > 0 ? walk.num_tiles : 1;  // O is written in any case
  const int32_t per_cta = small_quotient(tiles - 1, ctas) + 1;
  const int32_t begin = work.split * per_cta;
  if (begin >= tiles) return false;
  if (walk.num_tiles > 0) {
    const int32_t past = walk.column(begin + per_cta);
    work.walk = walk.part(walk.column(begin), past < walk.end_column ? past : walk.end_column);
  }
  work.num_splits = per_cta == 1 ? tiles : small_quotient(tiles - 1, per_cta) + 1;
  work.first_slot = 2 * first_cta;
  work.next_slot = work.first_slot + 2;
  work.slot_step = 2;
  return true;
}

}  // namespace pagoda::kernels::kv_buffer
