// The bf16 tile operations for AMX: 16 x 16 x 32 products (tdpbf16ps).
#if defined(__x86_64__)

#include "cpu/isa/bf16_ops.hpp"

namespace pagoda::cpu {
namespace {

// Tiles 0-3 accumulate, 4-5 hold A, 6-7 hold B. With up to 16 rows, A and the sums have just that
// many rows: the instruction's time follows the rows of A.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

void begin(int rows) {
  TileConfig config;
  const auto a_rows = static_cast<uint8_t>(rows < 16 ? rows : 16);
  for (int t = 0; t < 8; ++t) {
    config.row_bytes[t] = 64;
    config.rows[t] = t < 6 ? a_rows : 16;
  }
  // GCC's intrinsic names only the first 8 bytes as read: without this the other stores vanish.
  __asm__ volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
}

void end() { _tile_release(); }

// 32 rows by two panels: four products for four loads.
template <bool Accumulate>
void gemm_2x2(float* c, int64_t ldc, const char* a, int64_t lda, const char* b0, const char* b1,
              int steps) {
  const int64_t c_stride = ldc * 4;
  const int64_t a_stride = lda * 4;
  if (Accumulate) {
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
  }
  _tile_stored(0, c, c_stride);
  _tile_stored(1, c + 16, c_stride);
  _tile_stored(2, c + 16 * ldc, c_stride);
  _tile_stored(3, c + 16 * ldc + 16, c_stride);
}

// Up to 16 rows by up to two panels.
template <bool Accumulate, int Panels>
void gemm_1xn(float* c, int64_t ldc, const char* a, int64_t lda, const char* b0, const char* b1,
              int steps) {
  const int64_t c_stride = ldc * 4;
  const int64_t a_stride = lda * 4;
  if (Accumulate) {
    _tile_loadd(0, c, c_stride);
    if (Panels > 1) _tile_loadd(1, c + 16, c_stride);
  } else {
    _tile_zero(0);
    if (Panels > 1) _tile_zero(1);
  }
  for (int k = 0; k < steps; ++k) {
    _tile_loadd(4, a + k * 64, a_stride);
    _tile_loadd(6, b0 + k * 1024, 64);
    _tile_dpbf16ps(0, 4, 6);
    if (Panels > 1) {
      _tile_loadd(7, b1 + k * 1024, 64);
      _tile_dpbf16ps(1, 4, 7);
    }
  }
  _tile_stored(0, c, c_stride);
  if (Panels > 1) _tile_stored(1, c + 16, c_stride);
}

template <bool Accumulate>
void gemm_rows(float* c, int ldc, const char* a, int lda, const char* panels, int64_t panel_bytes,
               int rows, int num_panels, int steps) {
  for (int r = 0; r < rows; r += 32) {
    float* cr = c + static_cast<int64_t>(r) * ldc;
    const char* ar = a + static_cast<int64_t>(r) * lda * 4;
    const bool is_pair = rows - r > 16;
    int p = 0;
    for (; p + 2 <= num_panels; p += 2) {
      const char* b = panels + p * panel_bytes;
      if (is_pair) {
        gemm_2x2<Accumulate>(cr + p * kPanel, ldc, ar, lda, b, b + panel_bytes, steps);
      } else {
        gemm_1xn<Accumulate, 2>(cr + p * kPanel, ldc, ar, lda, b, b + panel_bytes, steps);
      }
    }
    if (p < num_panels) {
      const char* b = panels + p * panel_bytes;
      gemm_1xn<Accumulate, 1>(cr + p * kPanel, ldc, ar, lda, b, nullptr, steps);
      if (is_pair) {
        gemm_1xn<Accumulate, 1>(cr + 16 * static_cast<int64_t>(ldc) + p * kPanel, ldc,
                                ar + 16 * static_cast<int64_t>(lda) * 4, lda, b, nullptr, steps);
      }
    }
  }
}

void gemm(float* c, int ldc, const void* a, int lda, const void* panels, int64_t panel_words,
          int rows, int num_panels, int contraction_words, bool accumulate) {
  const int steps = contraction_words / 16;
  const auto* a_bytes = static_cast<const char*>(a);
  const auto* b_bytes = static_cast<const char*>(panels);
  if (accumulate) {
    gemm_rows<true>(c, ldc, a_bytes, lda, b_bytes, panel_words * 4, rows, num_panels, steps);
  } else {
    gemm_rows<false>(c, ldc, a_bytes, lda, b_bytes, panel_words * 4, rows, num_panels, steps);
  }
}

}  // namespace

const TileOps kTileOpsAmxBf16 = {.is_bf16 = true,
                                 .depth_align = kBf16DepthAlign,
                                 .begin = begin,
                                 .end = end,
                                 .pack_q = bf16_pack_q,
                                 .pack_k = pack_k_panels<Bf16Convert>,
                                 .pack_v = bf16_pack_v,
                                 .gemm = gemm,
                                 .softmax = softmax_tile<Bf16Probabilities>,
                                 .modify = modify_scores,
                                 .blend = blend_rows,
                                 .store = store_row};

}  // namespace pagoda::cpu

#endif
