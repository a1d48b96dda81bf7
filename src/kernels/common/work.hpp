// Work: a tile of query rows and the key tiles that it sees, or a piece of these; and the two ways to
// hand it out. One lane of a CTA computes it (work_ring.hpp). Of an instance's Config it needs
// `tile`: BN, load, scores, block_rows, num_blocks(), fuses_heads.
#pragma once

#include <cstdint>

#include "arch/thread.hpp"
#include "core/target.hpp"
#include "kernels/common/attention_params.hpp"
#include "kernels/common/kinds.hpp"
#include "mask/tile_walk.hpp"
#include "schedule/split_kv.hpp"
#include "schedule/tile_scheduler.hpp"

namespace pagoda::kernels {

// The walk of `rows`, which exist.
template <class Config>
PAGODA_DEVICE mask::TileWalk walk_of(const AttentionParams& params, const mask::RowTile& rows) {
  // What is gathered row by row may start anywhere in a page.
  const int32_t page_size =
      Config::tile.load == LoadKind::kGather ? 0 : params.sequences.keys.paged_size();
  const mask::TileShape shape = mask::tile_shape(Config::tile.BN, page_size);
  if constexpr (Config::tile.scores == ScoreClass::kGeneral) return params.mask.walk(rows, shape);
  return params.mask.interval.walk(rows, shape);
}

struct Work {
  int32_t sequence = 0;
  int32_t kv_head = 0;
  int32_t first_head = 0;  // query head of row 0
  int32_t num_heads = 1;   // heads of a token in the rows: row r is token r / num_heads
  int32_t first_token = 0;
  int32_t num_tokens = 0;    // tokens whose rows are written ..
  int32_t valid_tokens = 0;  // .. of which so many hold queries; <= num_tokens
  int32_t memory_row = 0;    // of token 0 of the sequence, see RowsView
  mask::RowTile rows{};      // what a mask is asked about; rows.num_rows > 0 unless walk is empty
  mask::TileWalk walk{};     // of this piece
  // Pieces of the same rows are computed by several CTAs and merged by the last of them. Piece i
  // leaves its partial result in slot(i).
  int32_t piece = 0, num_pieces = 1;
  int32_t first_slot = 0, next_slot = 0, slot_step = 1;

  [[nodiscard]] PAGODA_HOST_DEVICE int32_t slot(int32_t i) const {
    return i == 0 ? first_slot : next_slot + (i - 1) * slot_step;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE bool is_split() const { return num_pieces > 1; }
};

// --- tiles of tokens of one head, or of a KV head's query heads --------------------------------

// Draws entries of the grid that every CTA shares. Every CTA draws once past the end; whoever draws
// last leaves the counter at zero for the next launch.
struct GridCounter {
  arch::GlobalPtr<uint32_t> counter;
  int32_t
      draws;  // of all CTAs together: entries beyond the first of each, and one past the end each

  PAGODA_DEVICE int32_t operator()() const {
    const auto drawn = static_cast<int32_t>(
        arch::atomic_add<arch::Order::kRelaxed, arch::Scope::kGpu>(counter, 1U));
    if (drawn == draws - 1) arch::store(counter, 0U);
    return drawn;
  }
};

// CTAs take the next entry of the grid whenever they are free: the tiles of a causal mask differ too
// much for fixed shares.
using GridQueue = schedule::QueuedScheduler<GridCounter>;

PAGODA_DEVICE GridQueue grid_queue(const AttentionParams& params) {
  return {params.grid, arch::block_idx().x, arch::grid_dim().x,
          GridCounter{params.grid_counter, params.grid.size()}};
}

// Visible keys of a tile in up to grid.num_splits parts.
template <class Config, class Scheduler = GridQueue>
class GridWork {
 public:
  PAGODA_DEVICE explicit GridWork(const AttentionParams& params)
      : GridWork(params, grid_queue(params)) {}
  PAGODA_DEVICE GridWork(const AttentionParams& params, const Scheduler& tiles)
      : params_(params), tiles_(tiles) {}

  PAGODA_DEVICE bool next(Work& work) {
    for (schedule::TileCoord tile; tiles_.next(tile);) {
      if (make(tile, work)) return true;
    }
    return false;
  }

 private:
  PAGODA_DEVICE bool make(const schedule::TileCoord& tile, Work& work) {
    const Sequences& sequences = params_.sequences;
    const int32_t b = tile.sequence;
    if (sequences.num_rows(b) < params_.min_rows) return false;
    const auto num_keys = static_cast<int32_t>(sequences.keys.num_keys(b));
    const int32_t valid_left = sequences.num_valid_rows(b) - tile.first_row;
    work.sequence = b;
    work.first_head = tile.head;
    if constexpr (Config::tile.fuses_heads) {  // the grid counts groups of num_heads
      work.num_heads = params_.num_kv_heads * params_.group / params_.grid.num_heads;
      work.first_head = tile.head * work.num_heads;
    }
    work.kv_head = work.first_head / params_.group;
    work.first_token = tile.first_row;
    work.num_tokens = tile.num_rows;
    work.valid_tokens =
        valid_left < 0 ? 0 : (valid_left < tile.num_rows ? valid_left : tile.num_rows);
    work.memory_row = sequences.first_row(b);
    work.rows = mask::RowTile{b, num_keys, sequences.q_position(b, num_keys), tile.first_row,
                              work.valid_tokens};
    work.walk = mask::TileWalk{};
    if (work.valid_tokens > 0) work.walk = walk_of<Config>(params_, work.rows);
    work.piece = 0;
    work.num_pieces = 1;
    return params_.grid.num_splits == 1 || split(tile, work);
  }

  PAGODA_DEVICE bool split(const schedule::TileCoord& tile, Work& work) {
    const int32_t start = work.walk.start_column;
    const schedule::SplitKV parts =
        schedule::split_kv(start, work.walk.end_column, params_.grid.num_splits, Config::tile.BN);
    const int32_t num_parts = parts.num_parts();
    if (tile.split >= (num_parts == 0 ? 1 : num_parts)) return false;
    if (num_parts <= 1) return true;
    const mask::Interval keys = parts.part(tile.split);
    work.walk = work.walk.part(keys.lo, keys.hi);
    work.piece = tile.split;
    work.num_pieces = num_parts;
    work.first_slot = tiles_.index() - tile.split;
    work.next_slot = work.first_slot + 1;
    work.slot_step = 1;
    return true;
  }

  const AttentionParams& params_;
  Scheduler tiles_;
};

// --- packed rows -------------------------------------------------------------------------------

// How the rows of a sequence are cut: `heads` query heads of a KV head and `tokens` tokens a tile of
// `blocks` blocks, each of which holds whole tokens.
struct PackedRows {
  int32_t heads = 1;       // of a tile
  int32_t head_tiles = 1;  // of a KV head
  int32_t tokens = 1;      // of a tile

  PAGODA_HOST_DEVICE static PackedRows of(int32_t group, int32_t block_rows = 64,
                                          int32_t blocks = 1, bool divides_group = false) {
    if (group <= block_rows) return {group, 1, block_rows / group * blocks};
    int32_t heads = block_rows;
    while (divides_group && group % heads != 0) --heads;  // every tile has as many
    return {heads, (group - 1) / heads + 1, block_rows / heads * blocks};
  }
};

template <class Config>
PAGODA_HOST_DEVICE PackedRows packed_rows(int32_t group) {
  return PackedRows::of(group, Config::tile.block_rows, Config::tile.num_blocks(),
                        Config::tile.fuses_heads);
}

// a / b. Divisors of the schedule are 1 in plain decoding, and one lane computes it: a division would be a
// good part of its time.
PAGODA_HOST_DEVICE constexpr int32_t quotient(int32_t a, int32_t b) { return b == 1 ? a : a / b; }

// The key tiles of one sequence: every unit (rows that share their keys) has the same number.
struct SequenceTiles {
  int32_t num_rows = 0, valid_rows = 0;
  int32_t num_keys = 0, q_position = 0;
  mask::TileWalk walk{};
  int32_t unit_tiles = 0;  // 1 where no key is visible: the rows are still written
  int32_t units = 0;       // 0 where the sequence is another launch's

  PAGODA_HOST_DEVICE int32_t tiles() const { return units * unit_tiles; }
};

// What the share of a CTA starts with; computed by all of its threads (key_shares.hpp).
struct ShareStart {
  int32_t begin = 0, end = 0;  // key tiles of this CTA, counted over the whole batch
  int32_t share_tiles = 1;     // of every CTA
  int32_t sequence = 0;        // that holds tile `begin`
  int32_t sequence_begin = 0;  // its first tile
  SequenceTiles tiles{};       // .. and how many it has
};

template <class Config>
PAGODA_DEVICE SequenceTiles sequence_tiles(const AttentionParams& params, int32_t b) {
  const Sequences& sequences = params.sequences;
  SequenceTiles result;
  result.num_rows = sequences.num_rows(b);
  if (result.num_rows == 0 || result.num_rows > params.max_rows) return result;
  result.num_keys = static_cast<int32_t>(sequences.keys.num_keys(b));
  result.valid_rows = sequences.num_valid_rows(b);
  result.q_position = sequences.q_position(b, result.num_keys);
  if (result.valid_rows > 0) {
    result.walk = walk_of<Config>(
        params, mask::RowTile{b, result.num_keys, result.q_position, 0, result.valid_rows});
  }
  const PackedRows packed = packed_rows<Config>(params.group);
  result.unit_tiles = result.walk.num_tiles > 0 ? result.walk.num_tiles : 1;
  result.units =
      params.num_kv_heads * packed.head_tiles * (quotient(result.num_rows - 1, packed.tokens) + 1);
  return result;
}

// The share of this CTA: tiles [begin, end), unit after unit.
template <class Config>
class ShareWork {
 public:
  PAGODA_DEVICE ShareWork(const AttentionParams& params, const ShareStart& start)
      : params_(params),
        start_(start),
        position_(start.begin),
        sequence_(start.sequence),
        sequence_begin_(start.sequence_begin),
        tiles_(start.tiles) {}

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
  // What is left.
  [[nodiscard]] PAGODA_DEVICE ShareStart rest() const {
    return {position_, start_.end, start_.share_tiles, sequence_, sequence_begin_, tiles_};
  }

 private:
  // From position_ to the end of its unit, or of the share.
  PAGODA_DEVICE bool make(Work& work) {
    const int32_t unit = (position_ - sequence_begin_) / tiles_.unit_tiles;
    const int32_t unit_begin = sequence_begin_ + unit * tiles_.unit_tiles;
    const int32_t unit_end = unit_begin + tiles_.unit_tiles;
    if (params_.has_whole_units) {  // whoever has its first tile computes a unit
      const bool is_mine = position_ == unit_begin;
      if (is_mine) {
        place(unit, work);
        work.walk = tiles_.walk;
        work.num_pieces = 1;
      }
      position_ = unit_end;
      return is_mine;
    }
    const int32_t end = unit_end < start_.end ? unit_end : start_.end;
    place(unit, work);
    const int32_t first = position_ - unit_begin, last = end - unit_begin;
    work.walk = tiles_.walk;
    if (tiles_.walk.num_tiles > 0) {
      const int32_t past = tiles_.walk.column(last);
      work.walk = tiles_.walk.part(tiles_.walk.column(first),
                                   past < tiles_.walk.end_column ? past : tiles_.walk.end_column);
    }
    set_pieces(unit_begin, unit_end, work);
    position_ = end;
    return true;
  }

  // Which rows: units count token tiles fastest, then head tiles, then KV heads.
  PAGODA_DEVICE void place(int32_t unit, Work& work) const {
    const PackedRows packed = packed_rows<Config>(params_.group);
    const int32_t token_tiles = quotient(tiles_.num_rows - 1, packed.tokens) + 1;
    const int32_t head_unit = quotient(unit, token_tiles);
    work.sequence = sequence_;
    work.kv_head = quotient(head_unit, packed.head_tiles);
    const int32_t head_tile = head_unit - work.kv_head * packed.head_tiles;
    work.first_head = work.kv_head * params_.group + head_tile * packed.heads;
    const int32_t heads_left = params_.group - head_tile * packed.heads;
    work.num_heads = heads_left < packed.heads ? heads_left : packed.heads;
    work.first_token = (unit - head_unit * token_tiles) * packed.tokens;
    const int32_t left = tiles_.num_rows - work.first_token;
    work.num_tokens = left < packed.tokens ? left : packed.tokens;
    const int32_t valid_left = tiles_.valid_rows - work.first_token;
    work.valid_tokens =
        valid_left < 0 ? 0 : (valid_left < work.num_tokens ? valid_left : work.num_tokens);
    work.memory_row = params_.sequences.first_row(sequence_);
    work.rows = mask::RowTile{sequence_, tiles_.num_keys, tiles_.q_position, work.first_token,
                              work.valid_tokens};
  }

  // A CTA has at most two pieces of split units: slot 0 for a unit that began before its share, or
  // with it, slot 1 for one that begins inside and does not end.
  PAGODA_DEVICE void set_pieces(int32_t unit_begin, int32_t unit_end, Work& work) const {
    const int32_t share = start_.share_tiles;
    const int32_t first_cta = unit_begin / share;
    work.num_pieces = (unit_end - 1) / share - first_cta + 1;
    work.piece = arch::block_idx().x - first_cta;  // shares are the CTAs', in their order
    work.first_slot = 2 * first_cta + (unit_begin == first_cta * share ? 0 : 1);
    work.next_slot = 2 * (first_cta + 1);
    work.slot_step = 2;
  }

  const AttentionParams& params_;
  ShareStart start_;
  int32_t position_;
  int32_t sequence_;
  int32_t sequence_begin_;
  SequenceTiles tiles_;
};

}  // namespace pagoda::kernels
