// Few query rows: each row of K and of V is read once, in place, instead of being packed into
// panels, over the including unit's Vec and Words.
//
// Words defines how rows become vectors of 32-bit words (floats, or pairs of bf16):
//   kRowElements                 elements of a row of K that fill one vector
//   kKeys                        keys that share a word of V: 1, or 2 in bf16
//   kVecs                        vectors that kKeys rows of V give at a time
//   kMostRows                    query rows at a time
//   load<Element>(row, first, n)         elements [first, first + min(n, kRowElements))
//   columns<Element>(rows, keys, first, n, out[kVecs])   the same columns of `keys` rows of V
//   broadcast(word), multiply_add(a, b, c)
#pragma once

#include <cstdint>

#include "backends/cpu/isa/pack.hpp"
#include "backends/cpu/isa/tile_ops.hpp"

namespace pagoda::cpu {
namespace {

// On the vector units this is faster than panels by 1.7 to 2.0 with one or two rows, by 1.3 to 1.7
// with four, and by 1.0 to 1.1 with eight (SPR).
constexpr int kDirectRows = 8;
constexpr int kDirectVecs = 8;  // sums of O in registers, for each query row

// MR x Keys dot products along whole rows, kept apart as vectors: sums[r * stride + i].
template <typename Words, int Element, int MR, int Keys>
inline __attribute__((always_inline)) void direct_dots(const DirectScores* s, const float* q,
                                                       const void* const* keys, Vec* sums,
                                                       int stride) {
  constexpr int kElements = Words::kRowElements;
  const int width = s->k->width;
  const void* k[Keys];
  Vec acc[MR][Keys];
  for (int i = 0; i < Keys; ++i) {
    k[i] = keys[i];
    for (int r = 0; r < MR; ++r) acc[r][i] = Vec::zero();
  }
  int first = 0;
  int word = 0;
  for (; first + kElements <= width; first += kElements, word += Vec::kLanes) {
    for (int i = 0; i < Keys; ++i) {
      const auto words = Words::template load<Element>(k[i], first, kElements);
      for (int r = 0; r < MR; ++r) {
        acc[r][i] = Words::multiply_add(Words::load_words(q + r * s->ldq + word), words, acc[r][i]);
      }
    }
  }
  if (first < width) {
    for (int i = 0; i < Keys; ++i) {
      const auto words = Words::template load<Element>(k[i], first, width - first);
      for (int r = 0; r < MR; ++r) {
        const auto q_words = Words::load_first_words(q + r * s->ldq + word, s->ldq - word);
        acc[r][i] = Words::multiply_add(q_words, words, acc[r][i]);
      }
    }
  }
  for (int r = 0; r < MR; ++r) {
    for (int i = 0; i < Keys; ++i) sums[r * stride + i] = acc[r][i];
  }
}

// One vector of scores: Vec::kLanes / MR keys for each of MR rows, added across all at once.
template <typename Words, int Element, int MR>
inline void direct_score_block(const DirectScores* s, int row, int key) {
  constexpr int kKeys = Vec::kLanes / MR;
  constexpr int kAtOnce = MR >= 4 ? 1 : 4 / MR;  // four independent sums
  const float* q = static_cast<const float*>(s->q) + static_cast<int64_t>(row) * s->ldq;
  const void* rows[kKeys];
  for (int i = 0; i < kKeys; ++i) {
    // Columns past the last key get its score again; no reader uses them.
    rows[i] = s->k->rows[key + i < s->k->count ? key + i : s->k->count - 1];
    if (row == 0) prefetch_after(s->k, key + i);
  }
  Vec sums[Vec::kLanes];
  for (int i = 0; i < kKeys; i += kAtOnce) {
    direct_dots<Words, Element, MR, kAtOnce>(s, q, rows + i, sums + i, kKeys);
  }
  const Vec all = Vec::sums(sums);
  float* out = s->scores + static_cast<int64_t>(row) * s->ld + key;
  if constexpr (MR == 1) {
    all.store(out);
  } else {
    alignas(64) float lanes[Vec::kLanes];
    all.store(lanes);
    for (int r = 0; r < MR; ++r) {
      __builtin_memcpy(out + static_cast<int64_t>(r) * s->ld, lanes + r * kKeys,
                       kKeys * sizeof(float));
    }
  }
}

template <typename Words, int Element, int MR>
inline void direct_score_rows(const DirectScores* s, int row) {
  const int columns = (s->k->count + 31) / 32 * 32;
  for (int key = 0; key < columns; key += Vec::kLanes / MR) {
    direct_score_block<Words, Element, MR>(s, row, key);
  }
}

// acc += weights * columns of `Keys` rows of V, which share a word.
template <typename Words, int Element, int Keys, int MR, int NV>
inline __attribute__((always_inline)) void add_keys(Vec (&acc)[MR][NV], const float* weights,
                                                    int ldp, const void* const* rows, int first,
                                                    int n) {
  constexpr int kStep = Words::kVecs * Vec::kLanes;
  for (int j = 0; j < NV / Words::kVecs; ++j) {
    Vec words[Words::kVecs];
    Words::template columns<Element, Keys>(rows, first + j * kStep, n, words);
    for (int r = 0; r < MR; ++r) {
      const auto weight = Words::broadcast(weights + static_cast<int64_t>(r) * ldp);
      for (int i = 0; i < Words::kVecs; ++i) {
        Vec& sum = acc[r][j * Words::kVecs + i];
        sum = Words::multiply_add(weight, words[i], sum);
      }
    }
  }
}

// Columns from `first`, NV vectors of them, of MR rows of O: in registers over all keys.
template <typename Words, int Element, int MR, int NV, bool IsWhole>
inline void direct_output_block(const DirectOutput* t, int row, int first) {
  const PanelSource* v = t->v;
  const int n = IsWhole ? Words::kVecs * Vec::kLanes : v->width - first;
  const bool is_first_pass = row == 0 && first == 0;
  float* o = t->o + static_cast<int64_t>(row) * t->ldo + first;
  const float* p = static_cast<const float*>(t->probs) + static_cast<int64_t>(row) * t->ldp;
  Vec acc[MR][NV];
  for (int r = 0; r < MR; ++r) {
    for (int j = 0; j < NV; ++j) {
      acc[r][j] = t->accumulate ? Vec::load(o + r * t->ldo + j * Vec::kLanes) : Vec::zero();
    }
  }
  int key = 0;
  for (; key + Words::kKeys <= v->count; key += Words::kKeys) {
    if (is_first_pass) {
      for (int i = 0; i < Words::kKeys; ++i) prefetch_after(v, key + i);
    }
    add_keys<Words, Element, Words::kKeys>(acc, p + key / Words::kKeys, t->ldp, v->rows + key,
                                           first, n);
  }
  if (key < v->count) {
    add_keys<Words, Element, 1>(acc, p + key / Words::kKeys, t->ldp, v->rows + key, first, n);
  }
  for (int r = 0; r < MR; ++r) {
    for (int j = 0; j < NV; ++j) acc[r][j].store(o + r * t->ldo + j * Vec::kLanes);
  }
}

template <typename Words, int Element, int MR>
inline void direct_output_rows(const DirectOutput* t, int row) {
  constexpr int kVecs =
      kDirectVecs * MR > Words::kAccumulators ? Words::kAccumulators / MR : kDirectVecs;
  constexpr int kStep = Words::kVecs * Vec::kLanes;
  const int width = t->v->width;
  int first = 0;
  for (; first + kVecs * Vec::kLanes <= width; first += kVecs * Vec::kLanes) {
    direct_output_block<Words, Element, MR, kVecs, true>(t, row, first);
  }
  if constexpr (kVecs / 2 >= Words::kVecs) {
    for (; first + kVecs / 2 * Vec::kLanes <= width; first += kVecs / 2 * Vec::kLanes) {
      direct_output_block<Words, Element, MR, kVecs / 2, true>(t, row, first);
    }
  }
  for (; first < t->ldo; first += kStep) {  // the padding of O becomes zeros
    direct_output_block<Words, Element, MR, Words::kVecs, false>(t, row, first);
  }
}

// Calls f.operator()<MR>(row) for every row, up to Most at a time.
template <int Most, typename F>
inline void for_row_blocks(int rows, F f) {
  int row = 0;
  if constexpr (Most >= 4) {
    for (; row + 4 <= rows; row += 4) f.template operator()<4>(row);
  }
  for (; row + 2 <= rows; row += 2) f.template operator()<2>(row);
  if (row < rows) f.template operator()<1>(row);
}

template <typename Words, int Element>
inline void direct_scores_of(const DirectScores* s) {
  for_row_blocks<Words::kMostRows>(
      s->rows, [s]<int MR>(int row) { direct_score_rows<Words, Element, MR>(s, row); });
}

template <typename Words, int Element>
inline void direct_output_of(const DirectOutput* t) {
  for_row_blocks<Words::kMostRows>(
      t->rows, [t]<int MR>(int row) { direct_output_rows<Words, Element, MR>(t, row); });
}

}  // namespace
}  // namespace pagoda::cpu
