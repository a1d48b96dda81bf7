// GridWork: work tiles from a TileGrid of row tiles, some or all with their visible keys in up to
// grid.num_splits splits, or in the parts of equal shares (ShareScheduler).
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "arch/memory.hpp"
#include "arch/quotient.hpp"
#include "arch/thread.hpp"
#include "core/target.hpp"
#include "kernels/common/work_tile.hpp"
#include "schedule/split_kv.hpp"
#include "schedule/tile_scheduler.hpp"

namespace pagoda::kernels {

// The atomic counter of grid entries that all CTAs share. Each CTA draws until it gets a number
// past the end; the CTA that makes the last draw resets the counter to zero for the next launch.
struct GridCounter {
  arch::GlobalPtr<uint32_t> counter;
  // Draws of all CTAs together: the entries beyond the first of each CTA, and each CTA's one draw
  // past the end.
  int32_t draws;

  PAGODA_DEVICE int32_t operator()() const {
    const auto drawn = static_cast<int32_t>(
        arch::atomic_add<arch::Order::kRelaxed, arch::Scope::kGpu>(counter, 1U));
    if (drawn == draws - 1) arch::store(counter, 0U);
    return drawn;
  }
};

// Dynamic persistent schedule: tiles under a causal mask differ too much for a static one.
using GridQueue = schedule::QueuedScheduler<GridCounter>;

// Whether a scheduler itself says how the keys of a row tile are split: into parts(start, end,
// tile_keys), whose partial results are in slots from first_slot() on.
template <class Scheduler>
concept SplitsItself = requires(const Scheduler& scheduler, int32_t n) {
  { scheduler.parts(n, n, n) } -> std::same_as<schedule::SplitKV>;
  { scheduler.first_slot() } -> std::same_as<int32_t>;
};

// The grid of a kernel, with the rows of its tiles as a constant where the Config has them.
template <class Config>
PAGODA_DEVICE schedule::TileDecoder grid_of(const AttentionParams& params) {
  schedule::TileDecoder grid = params.grid;
  if constexpr (!kMayPackHeads<Config> && requires { Config::tile.tile_rows(); }) {
    grid.set_tile_rows(Config::tile.tile_rows());
  }
  return grid;
}
// A GridQueue or ShareScheduler.
template <class Config, class Scheduler>
PAGODA_DEVICE Scheduler scheduler_of(const AttentionParams& params) {
  const schedule::TileDecoder grid = grid_of<Config>(params);
  if constexpr (std::is_same_v<Scheduler, schedule::ShareScheduler>) {
    return {grid, arch::block_idx().x};
  } else {
    return {grid, arch::block_idx().x, arch::grid_dim().x,
            GridCounter{params.grid_counter, grid.size()}};
  }
}

template <class Config, class Scheduler = GridQueue>
class GridWork {
 public:
  PAGODA_DEVICE explicit GridWork(const AttentionParams& params)
      : GridWork(params, scheduler_of<Config, Scheduler>(params)) {}
  PAGODA_DEVICE GridWork(const AttentionParams& params, const Scheduler& tiles)
      : params_(params), tiles_(tiles) {}

  // False: no work tile is left for this CTA.
  PAGODA_DEVICE bool next(Work& work) {
    for (schedule::TileCoord tile; tiles_.next(tile);) {
      if (make(tile, work)) return true;
    }
    return false;
  }

 private:
  // False: the grid entry is empty, or its sequence belongs to the plan's other launch.
  PAGODA_DEVICE bool make(const schedule::TileCoord& tile, Work& work) {
    const Sequences& sequences = params_.sequences;
    const int32_t b = tile.sequence;
    // All loads before the first look at what they load: their latencies overlap. The keys first,
    // for they are loaded under branches, before which the others would be waited for.
    const auto num_keys = static_cast<int32_t>(sequences.keys.num_keys(b));
    int32_t num_rows = sequences.padded_rows, memory_row = 0;
    if (sequences.cu_rows != nullptr) {
      memory_row = arch::load_read_only(sequences.cu_rows + b);
      num_rows = arch::load_read_only(sequences.cu_rows + b + 1) - memory_row;
    }
    int32_t valid_rows = num_rows;
    if (sequences.valid_rows != nullptr) {
      valid_rows = arch::load_read_only(sequences.valid_rows + b);
    }
    int32_t q_position = num_keys - valid_rows;
    if (sequences.q_positions != nullptr) {
      q_position = arch::load_read_only(sequences.q_positions + b);
    }
    const int32_t valid_left = valid_rows - tile.first_row;
    const int32_t launch_rows = params_.is_batch_invariant ? valid_rows : num_rows;
    if (launch_rows < params_.min_rows) return false;
    work.sequence = b;
    work.first_head = tile.head;
    if constexpr (Config::tile.fuses_heads) {  // grid.num_heads counts groups of work.num_heads
      work.num_heads = params_.num_kv_heads * params_.group / params_.grid.grid().num_heads;
      work.first_head = tile.head * work.num_heads;
    }
    if constexpr (kMayPackHeads<Config>) {  // likewise
      work.num_heads = params_.row_block.heads;
      work.first_head = tile.head * work.num_heads;
    }
    work.kv_head = params_.by_group.quotient(work.first_head);
    work.first_token = tile.first_row;
    work.num_tokens = tile.num_rows;
    work.valid_tokens = valid_of_tile(valid_left, tile.num_rows);
    work.memory_row = memory_row;
    work.rows = mask::RowTile{b, num_keys, q_position, tile.first_row, work.valid_tokens};
    work.walk = mask::KVTileRange{};
    if (work.valid_tokens > 0) work.walk = kv_tiles_of<Config>(params_, work.rows);
    work.walk.tile_keys = Config::tile.BN;  // a constant, by which splits divide
    work.split = 0;
    work.num_splits = 1;
    if constexpr (std::is_same_v<Scheduler, schedule::ShareScheduler>) return take_share(work);
    return tile.num_splits == 1 || take_split(tile, work);
  }

  // Narrows `work` to the CTA's part of it. False: that has no KV tile.
  PAGODA_DEVICE bool take_share(Work& work) {
    const mask::KVTileRange all = work.walk;
    const int32_t kv_tiles = all.num_tiles > 0 ? all.num_tiles : 1;  // O is written all the same
    const schedule::SharePart part = tiles_.part(kv_tiles);
    if (part.begin == part.end) return false;
    if (part.num_splits == 1) return true;
    const int32_t end = part.end == kv_tiles ? all.end_column : all.column(part.end);
    work.walk = all.part(all.column(part.begin), end);
    take_slots(work, part.split, part.num_splits, part.first_slot);
    return true;
  }

  // Narrows `work` to split tile.split of its visible keys. False: they have fewer splits.
  PAGODA_DEVICE bool take_split(const schedule::TileCoord& tile, Work& work) {
    const schedule::SplitKV parts = parts_of(tile, work.walk.start_column, work.walk.end_column);
    const int32_t num_parts = parts.num_parts;
    if (tile.split >= (num_parts == 0 ? 1 : num_parts)) return false;
    if (num_parts <= 1) return true;
    const mask::Interval keys = parts.part(tile.split);
    work.walk = work.walk.part(keys.lo, keys.hi);
    take_slots(work, tile.split, num_parts, first_slot(tile));
    return true;
  }

  [[nodiscard]] PAGODA_DEVICE schedule::SplitKV parts_of(const schedule::TileCoord& tile,
                                                         int32_t start, int32_t end) const {
    constexpr int32_t keys = Config::tile.BN;
    if constexpr (SplitsItself<Scheduler>) {
      return tiles_.parts(start, end, keys);
    } else if constexpr (kMayHaveLeastTiles<Config>) {
      const schedule::TileDecoder& grid = params_.grid;
      return schedule::split_kv(start, end, tile.num_splits, keys, grid.by_splits(),
                                grid.grid().least_split_tiles);
    } else {
      return schedule::split_kv(start, end, tile.num_splits, keys, params_.grid.by_splits());
    }
  }
  [[nodiscard]] PAGODA_DEVICE int32_t first_slot(const schedule::TileCoord& tile) const {
    if constexpr (SplitsItself<Scheduler>) {
      return tiles_.first_slot();
    } else {
      return tiles_.index() - params_.grid.grid().num_whole - tile.split;
    }
  }
  static PAGODA_DEVICE void take_slots(Work& work, int32_t split, int32_t num_splits,
                                       int32_t first_slot) {
    work.split = split;
    work.num_splits = num_splits;
    work.first_slot = first_slot;
    work.next_slot = first_slot + 1;
    work.slot_step = 1;
  }

  const AttentionParams& params_;
  Scheduler tiles_;
};

}  // namespace pagoda::kernels
