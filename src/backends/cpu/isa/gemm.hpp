// C (+)= A * panels on vectors: the micro-kernel of scores (Q K^T) and of the output (P V), over
// the including unit's Vec and Dot. Dot defines one 32-bit word of A and of a panel: a float, or a
// pair of bf16.
#pragma once

#include <cstdint>

#include "backends/cpu/isa/softmax.hpp"
#include "backends/cpu/isa/tile_ops.hpp"

namespace pagoda::cpu {
namespace {

constexpr int kVecsPerPanel = kPanel / Vec::kLanes;

// MR rows by NV vectors of columns, held in registers over the whole contraction. GCC keeps the
// sums in memory around the loop unless the loops over them are unrolled early, hence the pragmas.
template <typename Dot, int MR, int NV>
inline void gemm_block(float* c, int ldc, const float* a, int lda, const float* b,
                       int64_t panel_words, int contraction, bool accumulate) {
  Vec acc[MR][NV];
#pragma GCC unroll 16
  for (int r = 0; r < MR; ++r) {
#pragma GCC unroll 16
    for (int j = 0; j < NV; ++j) acc[r][j] = Vec::zero();
  }
  const float* vectors[NV];
#pragma GCC unroll 16
  for (int j = 0; j < NV; ++j) {
    vectors[j] = b + (j / kVecsPerPanel) * panel_words + (j % kVecsPerPanel) * Vec::kLanes;
  }
  for (int k = 0; k < contraction; ++k) {
    Vec bk[NV];
#pragma GCC unroll 16
    for (int j = 0; j < NV; ++j) bk[j] = Vec::load(vectors[j] + k * kPanel);
#pragma GCC unroll 16
    for (int r = 0; r < MR; ++r) {
      const auto word = Dot::broadcast(a + r * lda + k);
#pragma GCC unroll 16
      for (int j = 0; j < NV; ++j) acc[r][j] = Dot::multiply_add(word, bk[j], acc[r][j]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < MR; ++r) {
#pragma GCC unroll 16
    for (int j = 0; j < NV; ++j) {
      float* out = c + r * ldc + j * Vec::kLanes;
      (accumulate ? Vec::load(out) + acc[r][j] : acc[r][j]).store(out);
    }
  }
}

// Fewer rows: more columns at a time, so that enough independent sums are in flight.
template <typename Dot, int MR>
inline void gemm_rows(float* c, int ldc, const float* a, int lda, const float* panels,
                      int64_t panel_words, int num_panels, int contraction, bool accumulate) {
  constexpr int kWide = (Dot::kAccumulators / MR) / kVecsPerPanel;  // panels at a time
  int p = 0;
  if constexpr (kWide >= 8) {
    for (; p + 8 <= num_panels; p += 8) {
      gemm_block<Dot, MR, 8 * kVecsPerPanel>(c + p * kPanel, ldc, a, lda, panels + p * panel_words,
                                             panel_words, contraction, accumulate);
    }
  }
  if constexpr (kWide >= 4) {
    for (; p + 4 <= num_panels; p += 4) {
      gemm_block<Dot, MR, 4 * kVecsPerPanel>(c + p * kPanel, ldc, a, lda, panels + p * panel_words,
                                             panel_words, contraction, accumulate);
    }
  }
  if constexpr (kWide >= 2) {
    for (; p + 2 <= num_panels; p += 2) {
      gemm_block<Dot, MR, 2 * kVecsPerPanel>(c + p * kPanel, ldc, a, lda, panels + p * panel_words,
                                             panel_words, contraction, accumulate);
    }
  }
  for (; p < num_panels; ++p) {
    gemm_block<Dot, MR, kVecsPerPanel>(c + p * kPanel, ldc, a, lda, panels + p * panel_words,
                                       panel_words, contraction, accumulate);
  }
}

template <typename Dot>
void multiply(const Gemm* g) {
  const auto* a = static_cast<const float*>(g->a);
  const auto* panels = static_cast<const float*>(g->panels);
  auto some_rows = [&]<int MR>(int r) {
    gemm_rows<Dot, MR>(g->c + static_cast<int64_t>(r) * g->ldc, g->ldc,
                       a + static_cast<int64_t>(r) * g->lda, g->lda, panels, g->panel_words,
                       g->num_panels, g->contraction, g->accumulate);
  };
  int r = 0;
  for (; r + Dot::kRows <= g->rows; r += Dot::kRows) some_rows.template operator()<Dot::kRows>(r);
  const int rest = g->rows - r;
  if constexpr (Dot::kRows > 4) {
    if ((rest & 4) != 0) {
      some_rows.template operator()<4>(r);
      r += 4;
    }
  }
  if constexpr (Dot::kRows > 2) {
    if ((rest & 2) != 0) {
      some_rows.template operator()<2>(r);
      r += 2;
    }
  }
  if ((rest & 1) != 0) some_rows.template operator()<1>(r);
}

// Product and softmax use the same execution units: nothing to overlap, so they run in sequence.
template <typename Dot, typename Format>
void gemm(const Gemm* product, const ScoreTile* side) {
  if (side != nullptr) softmax_tile<Format>(side);
  multiply<Dot>(product);
}

}  // namespace
}  // namespace pagoda::cpu
