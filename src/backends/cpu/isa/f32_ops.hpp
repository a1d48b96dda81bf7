// The fp32 table of one instruction set, over the including unit's Vec, transpose16 and
// convert_to_f32. Packing widens every element type to fp32.
#pragma once

#include <cstdint>

#include "backends/cpu/isa/direct.hpp"
#include "backends/cpu/isa/gemm.hpp"
#include "backends/cpu/isa/pack.hpp"
#include "backends/cpu/isa/softmax.hpp"
#include "backends/cpu/isa/tile_ops.hpp"

namespace pagoda::cpu {
namespace {

struct F32Dot {
  static constexpr int kRows = kF32Rows;
  static constexpr int kAccumulators = kF32Accumulators;
  static Vec broadcast(const float* word) { return Vec::set(*word); }
  static Vec multiply_add(Vec a, Vec b, Vec c) { return Vec::fma(a, b, c); }
};

struct F32Convert {
  static constexpr int kElement = kElementF32;
  static constexpr int kWordElements = 1;
  static void row(float* dst, const void* src, int element, int width, int padded_width) {
    convert_to_f32(dst, src, element, width);
    for (int i = width; i < padded_width; ++i) dst[i] = 0.0F;
  }
};

struct F32Probabilities {
  static constexpr int kBytes = 4;
  static Vec exp2(Vec x) { return exp2_nonpositive(x); }
  static void store(void* row, int i, Vec a, Vec b) {
    a.store(static_cast<float*>(row) + i);
    b.store(static_cast<float*>(row) + i + Vec::kLanes);
  }
};

inline void f32_pack_q(void* dst, const void* row, int element, int width, int padded_width) {
  F32Convert::row(static_cast<float*>(dst), row, element, width, padded_width);
}

inline void f32_pack_v(void* panels, const PanelSource* source, int64_t panel_words) {
  const int padded_count = (source->count + 31) / 32 * 32;
  const int num_panels = (source->width + kPanel - 1) / kPanel;
  auto* dst = static_cast<float*>(panels);
  for (int key = 0; key < padded_count; ++key) {
    prefetch_after(source, key);
    const char* row = key < source->count ? static_cast<const char*>(source->rows[key]) : nullptr;
    for (int p = 0; p < num_panels; ++p) {
      float* out = dst + p * panel_words + static_cast<int64_t>(key) * kPanel;
      const int first = p * kPanel;
      const int n =
          row == nullptr ? 0 : (source->width - first < kPanel ? source->width - first : kPanel);
      if (n > 0) {
        convert_to_f32(out, row + static_cast<int64_t>(first) * element_bytes(source->element),
                       source->element, n);
      }
      for (int i = n; i < kPanel; ++i) out[i] = 0.0F;
    }
  }
}

struct F32Words {
  static constexpr int kRowElements = Vec::kLanes;
  static constexpr int kKeys = 1;
  static constexpr int kVecs = 1;
  static constexpr int kMostRows = 4;
  static constexpr int kAccumulators = kF32Accumulators;
  template <int Element>
  static Vec load(const void* row, int first, int n) {
    return load_widened<Element>(row, first, n);
  }
  static Vec load_words(const float* q) { return Vec::load(q); }
  static Vec load_first_words(const float* q, int n) { return Vec::load_first(q, n); }
  template <int Element, int Keys>
  static void columns(const void* const* rows, int first, int n, Vec* out) {
    out[0] = load_widened<Element>(rows[0], first, n);
  }
  static Vec broadcast(const float* word) { return Vec::set(*word); }
  static Vec multiply_add(Vec a, Vec b, Vec c) { return Vec::fma(a, b, c); }
};

inline void f32_direct_scores(const DirectScores* s) {
  switch (s->k->element) {
    case kElementF32: return direct_scores_of<F32Words, kElementF32>(s);
    case kElementF16: return direct_scores_of<F32Words, kElementF16>(s);
    case kElementBF16: return direct_scores_of<F32Words, kElementBF16>(s);
    default: return direct_scores_of<F32Words, kElementF8E4M3>(s);
  }
}

inline void f32_direct_output(const DirectOutput* t) {
  switch (t->v->element) {
    case kElementF32: return direct_output_of<F32Words, kElementF32>(t);
    case kElementF16: return direct_output_of<F32Words, kElementF16>(t);
    case kElementBF16: return direct_output_of<F32Words, kElementBF16>(t);
    default: return direct_output_of<F32Words, kElementF8E4M3>(t);
  }
}

inline void no_op() {}

constexpr TileOps make_f32_ops() {
  return {.is_bf16 = false,
          .depth_align = 1,
          .column_align = kPanel,
          .begin = no_op,
          .end = no_op,
          .pack_q = f32_pack_q,
          .pack_k = pack_k_panels<F32Convert>,
          .pack_v = f32_pack_v,
          .gemm = gemm<F32Dot, F32Probabilities>,
          .direct_k_rows = kDirectRows,
          .direct_v_rows = kDirectRows,
          .direct_scores = f32_direct_scores,
          .direct_output = f32_direct_output,
          .softmax = softmax_tile<F32Probabilities>,
          .modify = modify_scores,
          .blend = blend_rows,
          .store = store_row};
}

}  // namespace
}  // namespace pagoda::cpu
