// The bf16 tile operations for AMX: 16 x 16 x 32 products (tdpbf16ps).
#if defined(__x86_64__)

#include "backends/cpu/isa/bf16_ops.hpp"

namespace pagoda::cpu {
namespace {

// Tiles 0-3 accumulate, 4-5 hold A, 6-7 hold B; all are 16 rows of 64 bytes.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

void begin() {
  TileConfig config;
  for (int t = 0; t < 8; ++t) {
    config.row_bytes[t] = 64;
    config.rows[t] = 16;
  }
  // GCC's intrinsic names only the first 8 bytes as read: without this the other stores vanish.
  __asm__ volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
}

void end() { _tile_release(); }

// 32 rows by two panels: four products for four loads. The work of `meanwhile` after them runs on
// the vector units while the tile unit computes. It must be interleaved finely: 64 vector
// instructions after each four products are free, 512 after 32 products take as long as without
// overlap.
template <bool Accumulate, typename Meanwhile>
inline void gemm_2x2(float* c, int64_t ldc, const char* a, int64_t lda, const char* b0,
                     const char* b1, int steps, Meanwhile meanwhile) {
  const int64_t c_stride = ldc * 4;
  const int64_t a_stride = lda * 4;
  if constexpr (Accumulate) {
    _tile_loadd(0, c, c_stride);
    _tile_loadd(1, c + 16, c_stride);
    _tile_loadd(2, c + 16 * ldc, c_stride);
    _tile_loadd(3, c + 16 * ldc + 16, c_stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int k = 0; k < steps; ++k) {
    _tile_loadd(4, a + k * 64, a_stride);
    _tile_loadd(6, b0 + k * 1024, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b1 + k * 1024, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + 16 * a_stride + k * 64, a_stride);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
    meanwhile();
  }
  _tile_stored(0, c, c_stride);
  _tile_stored(1, c + 16, c_stride);
  _tile_stored(2, c + 16 * ldc, c_stride);
  _tile_stored(3, c + 16 * ldc + 16, c_stride);
}

// 16 rows by four panels: four independent sums hide the products' latency (52 cycles, 16 apart).
template <bool Accumulate>
inline void gemm_1x4(float* c, int64_t ldc, const char* a, int64_t lda, const char* b,
                     int64_t panel_bytes, int steps) {
  const int64_t c_stride = ldc * 4;
  const int64_t a_stride = lda * 4;
  if constexpr (Accumulate) {
    _tile_loadd(0, c, c_stride);
    _tile_loadd(1, c + 16, c_stride);
    _tile_loadd(2, c + 32, c_stride);
    _tile_loadd(3, c + 48, c_stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int k = 0; k < steps; ++k, b += 1024) {
    _tile_loadd(4, a + k * 64, a_stride);
    _tile_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + panel_bytes, 64);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(6, b + 2 * panel_bytes, 64);
    _tile_dpbf16ps(2, 4, 6);
    _tile_loadd(7, b + 3 * panel_bytes, 64);
    _tile_dpbf16ps(3, 4, 7);
  }
  _tile_stored(0, c, c_stride);
  _tile_stored(1, c + 16, c_stride);
  _tile_stored(2, c + 32, c_stride);
  _tile_stored(3, c + 48, c_stride);
}

template <bool Accumulate>
inline void gemm_1x2(float* c, int64_t ldc, const char* a, int64_t lda, const char* b,
                     int64_t panel_bytes, int steps) {
  const int64_t c_stride = ldc * 4;
  if constexpr (Accumulate) {
    _tile_loadd(0, c, c_stride);
    _tile_loadd(1, c + 16, c_stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
  }
  for (int k = 0; k < steps; ++k, b += 1024) {
    _tile_loadd(4, a + k * 64, lda * 4);
    _tile_loadd(6, b, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + panel_bytes, 64);
    _tile_dpbf16ps(1, 4, 7);
  }
  _tile_stored(0, c, c_stride);
  _tile_stored(1, c + 16, c_stride);
}

// A softmax in equal parts, one for each step of a product.
class SideWork {
 public:
  SideWork(const ScoreTile* tile, int steps)
      : softmax_(tile), share_((softmax_.columns_left() / 32 + steps - 1) / steps * 32) {}

  __attribute__((always_inline)) void step() { softmax_.advance(share_); }
  void finish() { softmax_.advance(softmax_.columns_left()); }

 private:
  Softmax<Bf16Probabilities> softmax_;
  int share_;
};

// All panels are in pairs: depth and columns are multiples of 32, tiles of keys too.
template <bool Accumulate, typename Meanwhile>
void multiply(const Gemm* g, Meanwhile meanwhile) {
  const auto* panels = static_cast<const char*>(g->panels);
  const int64_t panel_bytes = g->panel_words * 4;
  const int steps = g->contraction / 16;
  for (int r = 0; r < g->rows; r += 32) {
    float* c = g->c + static_cast<int64_t>(r) * g->ldc;
    const char* a = static_cast<const char*>(g->a) + static_cast<int64_t>(r) * g->lda * 4;
    int p = 0;
    if (g->rows - r > 16) {
      for (; p < g->num_panels; p += 2) {
        const char* b = panels + p * panel_bytes;
        gemm_2x2<Accumulate>(c + p * kPanel, g->ldc, a, g->lda, b, b + panel_bytes, steps,
                             meanwhile);
      }
      continue;
    }
    for (; p + 4 <= g->num_panels; p += 4) {
      gemm_1x4<Accumulate>(c + p * kPanel, g->ldc, a, g->lda, panels + p * panel_bytes, panel_bytes,
                           steps);
    }
    if (p < g->num_panels) {
      gemm_1x2<Accumulate>(c + p * kPanel, g->ldc, a, g->lda, panels + p * panel_bytes, panel_bytes,
                           steps);
    }
  }
}

template <typename Meanwhile>
void multiply(const Gemm* product, Meanwhile meanwhile) {
  if (product->accumulate) {
    multiply<true>(product, meanwhile);
  } else {
    multiply<false>(product, meanwhile);
  }
}

void gemm(const Gemm* product, const ScoreTile* side) {
  if (side == nullptr) {
    multiply(product, [] {});
    return;
  }
  SideWork work(side, product->num_panels / 2 * (product->contraction / 16));
  multiply(
      product, [&work]() __attribute__((always_inline)) { work.step(); });
  work.finish();
}

// Up to this many rows the vector units are faster than the tile unit, whose rows are mostly
// unused.
constexpr int kDotRows = 2;

// One block of 16 keys as the rows of A: in place if they are bf16 at a constant stride, otherwise
// converted into `copy`.
struct KeyBlock {
  const void* data;
  int64_t stride_bytes;
};

inline KeyBlock key_block(const PanelSource* k, int first, int padded_width, char* copy) {
  const char* row = static_cast<const char*>(k->rows[first]);
  const bool is_whole = first + kPanel <= k->count;
  if (is_whole && k->element == kElementBF16 && k->width == padded_width) {
    const int64_t stride = static_cast<const char*>(k->rows[first + 1]) - row;
    // Compares every row: comparing the last one alone could miss two runs that happen to adjoin.
    bool is_regular = true;
    for (int i = 2; i < kPanel; ++i) {
      is_regular &= static_cast<const char*>(k->rows[first + i]) == row + i * stride;
    }
    if (is_regular) return {row, stride};
  }
  for (int i = 0; i < kPanel; ++i) {
    char* out = copy + static_cast<int64_t>(i) * padded_width * 2;
    if (first + i < k->count) {
      Bf16Convert::row(out, k->rows[first + i], k->element, k->width, padded_width);
    } else {
      for (int j = 0; j < padded_width; j += 32) {
        _mm512_storeu_si512(out + j * 2, _mm512_setzero_si512());
      }
    }
  }
  return {copy, int64_t{padded_width} * 2};
}

// Keys as rows of A, queries as columns of B: K needs no packing, only the scores are transposed.
// Blocks of 32 keys: two sums of 16 keys.
void direct_scores(const DirectScores* s) {
  if (s->rows <= kDotRows) return bf16_direct_scores(s);
  const PanelSource* k = s->k;
  const int padded_width = s->ldq * 2;
  const int steps = padded_width / 32;
  const auto* b = static_cast<const char*>(s->q_panel);
  auto* copy = static_cast<char*>(s->scratch);  // [2][16][padded_width] bf16
  alignas(64) float transposed[2 * 16 * 16];
  const float* rows[2][kPanel];
  for (int i = 0; i < 2 * kPanel; ++i) rows[i / kPanel][i % kPanel] = transposed + i * 16;
  for (int key = 0; key < k->count; key += 2 * kPanel) {
    for (int i = 0; i < 2 * kPanel; ++i) prefetch_after(k, key + i);
    const KeyBlock k0 = key_block(k, key, padded_width, copy);
    const bool has_second = key + kPanel < k->count;
    const KeyBlock k1 = has_second ? key_block(k, key + kPanel, padded_width,
                                               copy + int64_t{padded_width} * 2 * kPanel)
                                   : k0;
    _tile_zero(0);
    _tile_zero(1);
    // A compiler barrier: orders the stores to `copy` above before the tile loads below.
    __asm__ volatile("" : : : "memory");
    for (int step = 0; step < steps; ++step) {
      _tile_loadd(6, b + step * 1024, 64);
      _tile_loadd(4, static_cast<const char*>(k0.data) + step * 64, k0.stride_bytes);
      _tile_dpbf16ps(0, 4, 6);
      _tile_loadd(5, static_cast<const char*>(k1.data) + step * 64, k1.stride_bytes);
      _tile_dpbf16ps(1, 5, 6);
    }
    _tile_stored(0, transposed, 64);
    _tile_stored(1, transposed + 16 * 16, 64);
    transpose16(s->scores + key, rows[0], 0, s->ld);
    transpose16(s->scores + key + kPanel, rows[1], 0, s->ld);
  }
}

}  // namespace

const TileOps kTileOpsAmxBf16 = {.is_bf16 = true,
                                 .depth_align = kBf16Align,
                                 .column_align = kBf16Align,
                                 .begin = begin,
                                 .end = end,
                                 .pack_q = bf16_pack_q,
                                 .pack_k = pack_k_panels<Bf16Convert>,
                                 .pack_v = bf16_pack_v,
                                 .gemm = gemm,
                                 .direct_k_rows = kPanel,
                                 .direct_v_rows = kDotRows,
                                 .direct_scores = direct_scores,
                                 .direct_output = bf16_direct_output,
                                 .softmax = softmax_tile<Bf16Probabilities>,
                                 .modify = modify_scores,
                                 .blend = blend_rows,
                                 .store = bf16_store_row};

}  // namespace pagoda::cpu

#endif
