// FunctorMask: a predicate compiled into the kernel, inside an interval, and optionally a function
// of the score. The slowest class: one call per pair.
#pragma once

#include <concepts>
#include <cstdint>

#include "core/target.hpp"
#include "mask/interval_mask.hpp"

namespace pagoda::mask {

// One (query, key) pair.
struct Pair {
  int32_t sequence = 0;
  int32_t q_head = 0;
  int32_t q_position = 0;
  int32_t key = 0;
};

// keep(pair): is the key visible? Pure.
template <typename F>
concept KeepFunctor = requires(const F& f, const Pair& pair) {
  { f.keep(pair) } -> std::same_as<bool>;
};
// rewrite(pair, score): the new score, both in log2 units. Pure.
template <typename F>
concept ScoreFunctor = requires(const F& f, const Pair& pair, float score) {
  { f.rewrite(pair, score) } -> std::same_as<float>;
};

template <KeepFunctor F>
struct FunctorRow {
  Interval keys;
  Pair pair;
  F functor;

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr uint32_t keep32(int32_t column) const {
    uint32_t keep = keys.keep32(column);
    for (int32_t i = 0; i < 32; ++i) {
      const uint32_t bit = 1U << static_cast<uint32_t>(i);
      if ((keep & bit) != 0 && !functor.keep(at(column + i))) keep &= ~bit;
    }
    return keep;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr float rewrite(int32_t column, float score) const {
    if constexpr (ScoreFunctor<F>) return functor.rewrite(at(column), score);
    return score;
  }

 private:
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr Pair at(int32_t key) const {
    return {pair.sequence, pair.q_head, pair.q_position, key};
  }
};

template <KeepFunctor F>
struct FunctorMask {
  static constexpr MaskClass kClass = MaskClass::kFunctor;
  static constexpr bool kRewritesScores = ScoreFunctor<F>;

  IntervalMask interval{};
  F functor{};

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr TileWalk walk(const RowTile& tile,
                                                           TileShape shape) const {
    return interval.walk(tile, shape).all_partial();
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr TileStatus status(const RowTile& tile, int32_t column,
                                                               int32_t count) const {
    return interval.status(tile, column, count) == TileStatus::kSkip ? TileStatus::kSkip
                                                                     : TileStatus::kPartial;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr FunctorRow<F> row(const RowTile& tile, int32_t row,
                                                               int32_t q_head) const {
    return {interval.visible(tile, row), {tile.sequence, q_head, tile.position(row), 0}, functor};
  }
};

}  // namespace pagoda::mask
