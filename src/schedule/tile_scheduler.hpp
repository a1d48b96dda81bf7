// Tile schedulers: which tiles of a TileGrid a CTA computes, one after the other:
//
//   for (TileCoord tile; scheduler.next(tile);) { ... }
//
// TransientScheduler, PersistentScheduler and ShareScheduler may run in every role of a kernel.
// QueuedScheduler draws from a counter, so that only one thread of a CTA may run it; it passes
// index() to the other roles, which decode it by grid.at().
#pragma once

#include <concepts>
#include <cstdint>
#include <utility>

#include "core/target.hpp"
#include "schedule/tile_grid.hpp"

namespace pagoda::schedule {

template <typename S>
concept TileScheduler = requires(S& scheduler, TileCoord& tile) {
  { scheduler.next(tile) } -> std::same_as<bool>;                 // false: no tile is left
  { std::as_const(scheduler).index() } -> std::same_as<int32_t>;  // of the tile that next() set
};

// One CTA for every entry of the grid: the hardware schedules.
class TransientScheduler {
 public:
  PAGODA_HOST_DEVICE constexpr TransientScheduler(const TileDecoder& grid, int32_t cta)
      : grid_(grid), index_(cta) {}

  PAGODA_DEVICE bool next(TileCoord& tile) {
    if (is_done_) return false;
    is_done_ = true;
    tile = grid_.at(index_);
    return tile.exists();
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t index() const { return index_; }

 private:
  TileDecoder grid_;
  int32_t index_;
  bool is_done_ = false;
};

// Static persistent schedule: CTA i takes entries i, i + num_ctas, ...
class PersistentScheduler {
 public:
  PAGODA_HOST_DEVICE constexpr PersistentScheduler(const TileDecoder& grid, int32_t cta,
                                                   int32_t num_ctas)
      : grid_(grid), next_(cta), num_ctas_(num_ctas) {}

  PAGODA_DEVICE bool next(TileCoord& tile) {
    while (next_ < grid_.size()) {
      index_ = next_;
      next_ += num_ctas_;
      tile = grid_.at(index_);
      if (tile.exists()) return true;
    }
    return false;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t index() const { return index_; }

 private:
  TileDecoder grid_;
  int32_t next_;
  int32_t num_ctas_;
  int32_t index_ = 0;
};

// Static persistent schedule of a grid with equal shares: the row tiles of which CTA i has a part.
class ShareScheduler {
 public:
  PAGODA_HOST_DEVICE ShareScheduler(const TileDecoder& grid, int32_t cta)
      : grid_(grid),
        cta_(cta),
        next_(grid.equal_shares().first_tile(cta)),
        end_(grid.equal_shares().end_tile(cta)) {}

  PAGODA_DEVICE bool next(TileCoord& tile) {
    while (next_ < end_) {
      index_ = next_++;
      tile = grid_.at(index_);
      if (tile.exists()) return true;
    }
    return false;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t index() const { return index_; }
  // What the CTA takes of the `kv_tiles` of that row tile.
  [[nodiscard]] PAGODA_DEVICE SharePart part(int32_t kv_tiles) const {
    return grid_.equal_shares().part(index_, cta_, kv_tiles);
  }

 private:
  TileDecoder grid_;
  int32_t cta_;
  int32_t next_, end_;
  int32_t index_ = 0;
};

// An atomic counter that all CTAs share: returns 0, 1, 2, ...
template <typename C>
concept TileCounter = requires(C& counter) {
  { counter() } -> std::same_as<int32_t>;
};

// Numbers 0 .. end - 1, of which a CTA draws the next one whenever it is free. CTAs with a number
// `starter` of 0 .. num_starters - 1 start with that, without an atomic, those with a negative one
// draw at once; the counter assigns the numbers after those of the starters.
template <TileCounter Counter>
class NumberQueue {
 public:
  PAGODA_HOST_DEVICE constexpr NumberQueue(int32_t starter, int32_t num_starters, int32_t end,
                                           Counter counter)
      : number_(starter < 0 ? -1 : starter),
        num_starters_(num_starters),
        end_(end),
        counter_(counter),
        has_started_(starter < 0) {}

  // False: no number is left for this CTA.
  PAGODA_DEVICE bool next() {
    if (number_ >= end_) return false;
    if (has_started_) number_ = num_starters_ + counter_();
    has_started_ = true;
    return number_ < end_;
  }
  // That next() set.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t number() const { return number_; }

 private:
  int32_t number_;
  int32_t num_starters_, end_;
  Counter counter_;
  bool has_started_;
};

// Dynamic persistent schedule: CTA i starts with entry i, and takes the next one when it is free.
template <TileCounter Counter>
class QueuedScheduler {
 public:
  PAGODA_HOST_DEVICE constexpr QueuedScheduler(const TileDecoder& grid, int32_t cta,
                                               int32_t num_ctas, Counter counter)
      : grid_(grid), queue_(cta, num_ctas, grid.size(), counter) {}

  PAGODA_DEVICE bool next(TileCoord& tile) {
    while (queue_.next()) {
      tile = grid_.at(queue_.number());
      if (tile.exists()) return true;
    }
    return false;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t index() const { return queue_.number(); }

 private:
  TileDecoder grid_;
  NumberQueue<Counter> queue_;
};

}  // namespace pagoda::schedule
