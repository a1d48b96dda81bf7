// The functor that an attention kernel is compiled for, if its Config has one: its value in the
// kernel's parameters, the KV tiles that it leaves visible, and its rows as it sees them.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "core/target.hpp"
#include "kernels/common/attention_params.hpp"
#include "mask/kv_tile_range.hpp"
#include "pagoda/functor.hpp"
#include "softmax/online.hpp"

namespace pagoda::kernels {

// The Config of a kernel for a functor: that of the plain kernel, and the functor's type.
template <class Config, class Functor_>
struct FunctorConfig : Config {
  using Functor = Functor_;
};

struct NoFunctor {};

namespace detail {

template <class Config>
struct FunctorOf {
  using type = NoFunctor;
};
template <class Config>
requires requires { typename Config::Functor; }
struct FunctorOf<Config> {
  using type = typename Config::Functor;
};

}  // namespace detail

template <class Config>
using FunctorOf = typename detail::FunctorOf<Config>::type;

template <class F>
concept HasKeep = requires(const F& functor, const QueryRow& row) {
  { functor.keep(row, int32_t{}) } -> std::same_as<bool>;
};
template <class F>
concept HasScore = requires(const F& functor, const QueryRow& row) {
  { functor.score(row, int32_t{}, float{}) } -> std::same_as<float>;
};
template <class F>
concept HasVisible = requires(const F& functor, const QueryRows& rows) {
  { functor.visible(rows) } -> std::same_as<VisibleKeys>;
};

// True, or a compiler's error that says what the type lacks.
template <class F>
constexpr bool is_functor() {
  static_assert(std::is_trivially_copyable_v<F>, "a functor is copied into kernel parameters");
  static_assert(sizeof(F) <= kMaxFunctorBytes, "a functor is too large");
  static_assert(alignof(F) <= 16, "a functor's alignment is too large");
  static_assert(HasKeep<F> || HasScore<F>,
                "a functor has keep(const QueryRow&, int32_t) -> bool, score(const QueryRow&, "
                "int32_t, float) -> float, or both, as const members");
  static_assert(!HasVisible<F> || HasKeep<F>, "visible() needs keep()");
  return true;
}
template <class F>
constexpr bool is_causal_functor() {
  if constexpr (requires { F::kIsCausal; }) return F::kIsCausal;
  return false;
}

template <class Config>
inline constexpr bool kHasFunctorMask = HasKeep<FunctorOf<Config>>;
template <class Config>
inline constexpr bool kHasFunctorScore = HasScore<FunctorOf<Config>>;

// Parameters of a kernel: for a functor, with its value.
template <class Functor>
struct FunctorParams : AttentionParams {
  Functor functor;
};
template <class Config>
using ParamsOf = std::conditional_t<std::same_as<FunctorOf<Config>, NoFunctor>, AttentionParams,
                                    FunctorParams<FunctorOf<Config>>>;

// `params` are ParamsOf<Config>.
template <class Config>
PAGODA_DEVICE const FunctorOf<Config>& functor_of(const AttentionParams& params) {
  return static_cast<const FunctorParams<FunctorOf<Config>>&>(params).functor;
}

PAGODA_DEVICE QueryRow query_row(const mask::RowTile& tile, int32_t row, int32_t q_head) {
  return {tile.sequence, tile.seqlen_kv, row, tile.position(row), q_head};
}

// Keys that some rows see, in two intervals, and keys that all of them see.
struct VisibleIntervals {
  mask::Interval prefix, keys, unmasked;

  // Whether some row may see one of the keys [begin, end).
  [[nodiscard]] PAGODA_DEVICE bool has_any(int32_t begin, int32_t end) const {
    return (begin < keys.hi && end > keys.lo) || (begin < prefix.hi && end > prefix.lo);
  }
};

// By the functor alone.
template <class Config>
PAGODA_DEVICE VisibleIntervals functor_intervals(const AttentionParams& params,
                                                 const mask::RowTile& rows) {
  if constexpr (HasVisible<FunctorOf<Config>>) {
    const VisibleKeys seen =
        functor_of<Config>(params).visible({rows.sequence, rows.seqlen_kv, rows.first_row,
                                            rows.num_rows, rows.position(rows.first_row)});
    const auto interval = [](KeyRange range) { return mask::Interval{range.begin, range.end}; };
    return {interval(seen.prefix), interval(seen.keys), interval(seen.unmasked)};
  } else {
    return {{}, {0, rows.seqlen_kv}, {}};
  }
}

// By the functor and by the mask of the call.
template <class Config>
PAGODA_DEVICE VisibleIntervals visible_intervals(const AttentionParams& params,
                                                 const mask::RowTile& rows) {
  const mask::Interval first = params.mask.interval.visible(rows, rows.first_row);
  const mask::Interval last =
      params.mask.interval.visible(rows, rows.first_row + rows.num_rows - 1);
  const mask::Interval keys{first.lo, last.hi};
  const VisibleIntervals seen = functor_intervals<Config>(params, rows);
  return {seen.prefix & keys, seen.keys & keys, seen.unmasked & mask::Interval{last.lo, first.hi}};
}

// The KV tiles of `rows`. With `is_even` their distances are equal: no gap.
template <class Config, bool is_even>
PAGODA_DEVICE mask::KVTileRange functor_kv_tiles(const AttentionParams& params,
                                                 const mask::RowTile& rows, mask::TileShape shape) {
  VisibleIntervals seen = visible_intervals<Config>(params, rows);
  if (is_even && !seen.prefix.empty()) {
    seen.keys = seen.keys.empty() ? seen.prefix : seen.keys | seen.prefix;
    seen.prefix = {};
  }
  return mask::make_kv_tile_range(seen.prefix, seen.keys, seen.unmasked, shape);
}

// The tiles of `walk`, those of a work tile, that `rows`, some of its rows, visit.
template <class Config>
PAGODA_DEVICE mask::KVTileRange functor_tiles_of_rows(const AttentionParams& params,
                                                      const mask::KVTileRange& walk,
                                                      const mask::RowTile& rows, int32_t BN) {
  const VisibleIntervals seen = visible_intervals<Config>(params, rows);
  int32_t past = 0;
  if (!seen.prefix.empty()) past = seen.prefix.hi;
  if (!seen.keys.empty() && seen.keys.hi > past) past = seen.keys.hi;
  return walk.of_columns(walk.column_of(past),
                         {walk.column_of(seen.unmasked.lo), walk.column_of(seen.unmasked.hi)}, BN);
}

// The first key of a tile.
template <class Config>
PAGODA_DEVICE int32_t first_key_of(const mask::KVTileRange& walk, int32_t tile) {
  if constexpr (kHasFunctorMask<Config>) return walk.first_key(tile);
  return walk.column(tile);
}

// A key that the functor may be asked for: of keys past the last one, whose scores the mask of the
// call has excluded, or will replace, the last one.
PAGODA_DEVICE int32_t existing_key(const QueryRow& row, int32_t key) {
  const int32_t last = row.seqlen_kv - 1;  // as a minimum, which is one instruction with the sum
  return key < last ? key : last;
}

// Whether the functor keeps a pair.
template <class Config>
PAGODA_DEVICE bool functor_keeps(const AttentionParams& params, const QueryRow& row, int32_t key) {
  return functor_of<Config>(params).keep(row, existing_key(row, key));
}

// The functor's score of a product, in natural units. `scale`: from the product to log2 units.
template <class Config>
PAGODA_DEVICE float functor_score(const AttentionParams& params, const QueryRow& row, int32_t key,
                                  float product, float scale) {
  constexpr float kLn2 = 0.693147181F;
  return functor_of<Config>(params).score(row, existing_key(row, key), product * (scale * kLn2));
}

// From scores of exp2_scores() to log2 units: `scale`, or of scores in natural units.
template <class Config>
PAGODA_DEVICE float score_factor(float scale) {
  return kHasFunctorScore<Config> ? softmax::kLog2e : scale;
}

}  // namespace pagoda::kernels
