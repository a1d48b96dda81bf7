// OwnTiles: the KV tiles of a work tile that the rows of one consumer see, fewer than the work
// tile's under a causal mask and where its last rows are missing. Load Q finds them, because it has
// time: 190 instructions before the first product of every work tile otherwise.
#pragma once

#include <cstdint>

#include "kernels/common/functor.hpp"
#include "kernels/mha_sm90/schedule.hpp"

namespace pagoda::mha_sm90 {

struct alignas(16) OwnTiles {  // trivial: it is in shared memory
  int32_t num_tiles;
  // The tiles before this one need no maxima of scores: every row has a pivot by then, from the
  // tile of its last key, and the call does not want the row maxima.
  int32_t maxima_begin;
  int32_t unmasked_begin, unmasked_end;

  static PAGODA_DEVICE OwnTiles of(const mask::KVTileRange& walk) {
    return {walk.num_tiles, 0, walk.unmasked_begin, walk.unmasked_end};
  }
};

template <class Config>
struct OwnTilesOf {
  static constexpr TileConfig tile = Config::tile;
  // Whether a consumer has them: its rows may see fewer KV tiles than those of the work tile, or it
  // is the only one, of e4m3 rows, and leaves out maxima. General scores have no registers left to
  // skip tiles.
  static constexpr bool exist = tile.scores != ScoreClass::kGeneral &&
                                tile.rows == RowKind::kTokens &&
                                (tile.num_consumers > 1 || tile.element_bytes == 1);
  // Functors may need more registers than a producer has: their consumers find the tiles.
  static constexpr bool are_found_by_load_q = exist && !kernels::kHasFunctorMask<Config>;

  static PAGODA_DEVICE OwnTiles find(const AttentionParams& params, const Work& work,
                                     int consumer) {
    OwnTiles own = OwnTiles::of(work.walk);
    const int32_t tokens = tokens_of_consumer<Config>(params);
    const int32_t first = work.first_token + consumer * tokens;
    const int32_t past = work.first_token + work.valid_tokens;
    if (first >= past) {
      own.num_tiles = 0;
      return own;
    }
    const int32_t last = (past - first > tokens ? first + tokens : past) - 1;
    if constexpr (kernels::kHasFunctorMask<Config>) {
      mask::RowTile rows = work.rows;
      rows.first_row = first;
      rows.num_rows = last - first + 1;
      return OwnTiles::of(kernels::functor_tiles_of_rows<Config>(params, work.walk, rows, tile.BN));
    } else {
      const mask::Interval of_first = params.mask.interval.visible(work.rows, first);
      own = OwnTiles::of(
          work.walk.of_rows(of_first, params.mask.interval.visible(work.rows, last), tile.BN));
      if (params.row_max == nullptr && !of_first.empty()) {
        // The first row is the one that sees the fewest tiles. In a chunked mask its chunk may end
        // before the keys of this split begin.
        const int32_t keys = of_first.hi - work.walk.start_column;
        const int32_t end = keys > 0 ? (keys - 1) / tile.BN : 0;
        own.maxima_begin = end < own.num_tiles ? end : own.num_tiles - 1;
        // A pivot from few keys is often too small: e4m3 P overflows, and its tile is made twice.
        const bool has_few = tile.element_bytes == 1 && keys - end * tile.BN < tile.BN / 2;
        if (has_few && own.maxima_begin > 0) --own.maxima_begin;
      }
      return own;
    }
  }
};

}  // namespace pagoda::mha_sm90
