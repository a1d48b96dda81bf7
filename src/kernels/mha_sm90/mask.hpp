// The rows of one tile of scores in registers, and the keys that they see: scores of masked keys
// become -infinity. The only synchronisation are the shuffles of the four lanes that share a row.
//
// A thread holds two rows of its warpgroup's 64, and of each the columns 8 j + 2 (lane % 4) + {0,
// 1} (arch/layout/fragment_layout.hpp): register i belongs to row i / 2 % 2.
#pragma once

#include <cstdint>
#include <type_traits>

#include "arch/fault.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "core/target.hpp"
#include "kernels/common/functor.hpp"
#include "kernels/common/row.hpp"
#include "kernels/mha_sm90/config.hpp"
#include "kernels/mha_sm90/schedule.hpp"
#include "softmax/online.hpp"

namespace pagoda::mha_sm90 {

template <class Config>
using RescaleRule = std::conditional_t<Config::tile.element_bytes == 1, softmax::RescaleLazilyFp8,
                                       softmax::RescaleLazily>;
// One of the two rows of a thread.
template <class Config>
using Row = kernels::Row<RescaleRule<Config>>;

// Row `index` of a work tile.
template <class Config>
PAGODA_DEVICE Row<Config> make_row(const AttentionParams& params, const Work& work, int32_t index) {
  constexpr auto map = Config::tile.rows == RowKind::kPacked ? kernels::RowMap::kPacked
                       : kernels::kMayPackHeads<Config>      ? kernels::RowMap::kRowBlocks
                                                             : kernels::RowMap::kTokens;
  static_assert(kernels::kRowsOfBlock == kRows);
  // One consumer has one block. The compiler does not know it, and would keep the block of each row
  // in registers over the mainloop.
  if constexpr (map == kernels::RowMap::kRowBlocks && Config::tile.num_consumers == 1) {
    index = static_cast<int32_t>(static_cast<uint32_t>(index) % kRows);
  }
  return kernels::tile_row<RescaleRule<Config>, map>(params, work, index);
}

// Tokens: the first row of this warp in the work tile. A lane may call it alone: warp_idx() and
// warpgroup_idx() are shuffles.
PAGODA_DEVICE int first_row_of_warp() { return 16 * (arch::thread_idx() / 32 - 4); }

// Row `r` of this thread as a functor sees it. The index of a token is computed again: kept over
// the mainloop it would spill. Of packed rows it would be a division.
template <class Config>
PAGODA_DEVICE QueryRow query_row_of(const Work& work, const Row<Config>& row, int r) {
  if constexpr (Config::tile.rows == RowKind::kTokens) {
    const int index = first_row_of_warp() + arch::lane_idx() / 4 + 8 * r;
    return kernels::query_row(work.rows, work.first_token + index, work.first_head);
  }
  return kernels::query_row(work.rows, row.token, row.q_head);
}

// Which of the tile's keys a row sees, 32 a word. General masks: each of the four lanes of a row
// evaluates the mask for one word, and shuffles share the words.
template <class Config>
struct KeepWords {
  uint32_t own = 0;  // general masks: this lane's word

  static PAGODA_DEVICE KeepWords of(const AttentionParams& params, const WorkReader& reader,
                                    const Row<Config>& row, int32_t column) {
    KeepWords words;
    if constexpr (Config::tile.scores == ScoreClass::kGeneral) {
      constexpr int blocks = (Config::tile.BN + 31) / 32;
      const int32_t base = column + 32 * (arch::lane_idx() % 4 % blocks);
      if (row.is_valid && row.keys.keep32(base) != 0) {
        const mask::RowTile rows = reader.work().rows;
        words.own = params.mask.row(rows, row.token).keep32(base);
      }
    }
    return words;
  }
  // Every lane of the warp calls it.
  PAGODA_DEVICE uint32_t word(const Row<Config>& row, int32_t column, int block) const {
    if constexpr (Config::tile.scores == ScoreClass::kGeneral) {
      return arch::shuffle(own, arch::lane_idx() / 4 * 4 + block);
    }
    return row.keys.keep32(column + 32 * block);
  }
};

// Scores of row `r` become -infinity where `keep`, the word of 32 keys from column `block` of the
// tile on, excludes them.
template <int BN>
PAGODA_DEVICE void apply_keep_word(uint32_t keep, int block, int r, float (&s)[BN / 2]) {
  keep = arch::mutable_value("one key dropped", keep, keep & keep >> 1U);
  keep = arch::mutable_value("one hidden key kept", keep, keep | keep << 1U);
  keep >>= 2U * (static_cast<uint32_t>(arch::lane_idx()) % 4U);  // this thread's first of every 8
  PAGODA_UNROLL
  for (int j = 0; j < 32 && block + j < BN; j += 8) {
    PAGODA_UNROLL
    for (int e = 0; e < 2; ++e) {
      float& score = s[(block + j) / 2 + 2 * r + e];
      if ((keep >> static_cast<uint32_t>(j + e) & 1U) == 0) score = softmax::kMinusInfinity;
    }
  }
}

// The rows that this warp has of a work tile of tokens; at least one, also where all are padding
// rows. All rows of packed ones.
template <class Config>
PAGODA_DEVICE mask::RowTile rows_of_warp(const Work& work) {
  mask::RowTile rows = work.rows;
  if constexpr (Config::tile.rows == RowKind::kTokens) {
    const int32_t past = work.first_token + work.valid_tokens;
    const int32_t first = work.first_token + first_row_of_warp();
    rows.first_row = first < past ? first : past - 1;
    rows.num_rows = past - rows.first_row < 16 ? past - rows.first_row : 16;
  }
  return rows;
}

// Which of the keys from `begin` on a functor keeps, in this thread's columns of 32.
template <class Config>
PAGODA_DEVICE uint32_t functor_word(const AttentionParams& params, const QueryRow& row,
                                    int32_t begin) {
  const int32_t first = 2 * (arch::lane_idx() % 4);
  uint32_t word = 0;
  PAGODA_UNROLL
  for (int j = 0; j < 32; j += 8) {
    PAGODA_UNROLL
    for (int e = 0; e < 2; ++e) {
      if (!kernels::functor_keeps<Config>(params, row, begin + first + j + e)) continue;
      word |= uint32_t{1} << static_cast<uint32_t>(j + e);
    }
  }
  return word << static_cast<uint32_t>(first);
}

// Whether a functor is asked for groups of keys first. Tokens with O of 256 columns have no
// register for the answer: 36 bytes of spills.
template <class Config>
inline constexpr bool kHasFunctorGroups = kernels::kHasFunctorMask<Config> &&
                                          (Config::tile.rows != RowKind::kTokens ||
                                           Config::tile.depth_vo <= 128);

// The masks of the call and of a functor, in groups of 32 keys: keep() is asked only where this
// warp's rows see some of the keys, but not all of them.
template <class Config>
PAGODA_DEVICE void apply_masks_by_group(const AttentionParams& params, const Work& work,
                                        const Row<Config> (&rows)[2], int32_t column,
                                        float (&s)[Config::tile.BN / 2]) {
  constexpr int BN = Config::tile.BN;
  static_assert(BN % 32 == 0);
  const kernels::VisibleIntervals seen =
      kernels::functor_intervals<Config>(params, rows_of_warp<Config>(work));
  const mask::Interval unmasked = seen.unmasked & rows[0].keys & rows[1].keys;
  PAGODA_UNROLL
  for (int block = 0; block < BN; block += 32) {
    const int32_t begin = column + block, end = begin + 32;
    uint32_t words[2] = {0, 0};
    if (unmasked.lo <= begin && end <= unmasked.hi) {
      words[0] = words[1] = 0xffffffffU;
    } else if (seen.has_any(begin, end)) {
      PAGODA_UNROLL
      for (int r = 0; r < 2; ++r) {
        words[r] = rows[r].keys.keep32(begin);
        if (words[r] == 0) continue;  // also padding rows, which are no rows of a functor
        words[r] &= functor_word<Config>(params, query_row_of<Config>(work, rows[r], r), begin);
      }
    }
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) apply_keep_word<BN>(words[r], block, r, s);
  }
}

// Asks keep() for all pairs of row `r`.
template <class Config>
PAGODA_DEVICE void apply_functor_mask(const AttentionParams& params, const WorkReader& reader,
                                      const Row<Config>& of_row, int r, int32_t column,
                                      float (&s)[Config::tile.BN / 2]) {
  if (of_row.keys.empty()) return;  // padding rows are no rows of a functor
  const QueryRow row = query_row_of<Config>(reader.work(), of_row, r);
  const int32_t first = column + 2 * (arch::lane_idx() % 4);
  PAGODA_UNROLL
  for (int i = 0; i < Config::tile.BN / 2; i += 4) {
    PAGODA_UNROLL
    for (int e = 0; e < 2; ++e) {
      if (kernels::functor_keeps<Config>(params, row, first + 2 * i + e)) continue;
      s[i + 2 * r + e] = softmax::kMinusInfinity;
    }
  }
}

// Scores of masked keys become -infinity. `column`: first key of the tile.
template <class Config>
PAGODA_DEVICE void apply_mask(const AttentionParams& params, const WorkReader& reader,
                              const Row<Config> (&rows)[2], int32_t column,
                              float (&s)[Config::tile.BN / 2]) {
  constexpr int BN = Config::tile.BN;
  if constexpr (kHasFunctorGroups<Config>) {
    apply_masks_by_group<Config>(params, reader.work(), rows, column, s);
  } else {
    PAGODA_UNROLL
    for (int r = 0; r < 2; ++r) {
      const auto words = KeepWords<Config>::of(params, reader, rows[r], column);
      PAGODA_UNROLL
      for (int block = 0; block < BN; block += 32) {
        apply_keep_word<BN>(words.word(rows[r], column, block / 32), block, r, s);
      }
      if constexpr (kernels::kHasFunctorMask<Config>) {
        apply_functor_mask<Config>(params, reader, rows[r], r, column, s);
      }
    }
  }
}

}  // namespace pagoda::mha_sm90
