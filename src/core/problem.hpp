// Problem: a validated Attention in normal form, the input of every kernel. Ragged and padded Q;
// dense, ragged and paged K and V; block tables and CSR: here they differ in strides and offsets
// only.
#pragma once

#include <cassert>
#include <cstdint>
#include <span>
#include <variant>

#include "core/array_elements.hpp"
#include "core/functor.hpp"
#include "pagoda/attention.hpp"

namespace pagoda::core {

// Rows of Q, O, LSE or row_max: element (sequence b, row i, head h) is at offset
//   sequence_offset(b) + i * row_stride + h * head_stride.
struct RowView {
  void* data = nullptr;  // never written where the operand is Q
  DType dtype = DType::kF32;
  int64_t sequence_stride = 0;  // padded; 0 when ragged
  int64_t row_stride = 0;
  int64_t head_stride = 0;
};

// K or V: element (sequence b, key j, head h) is in row r = leftpad(b) + j of the sequence, at
// offset
//   dense   b * outer_stride + r * row_stride + h * head_stride
//   ragged  (cu_seqlens_kv[b] + r) * row_stride + h * head_stride
//   paged   page(b, r / page_size) * outer_stride + (r % page_size) * row_stride + h * head_stride
struct KVView {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  int64_t outer_stride = 0;  // sequence or page
  int64_t row_stride = 0;
  int64_t head_stride = 0;
};

enum class KVKind : uint8_t { kDense, kRagged, kPaged };

// The scales of (sequence, head) pairs: one for all, or an array in which `group` neighbouring
// heads share a value.
struct HeadScales {
  float shared = 1;
  const float* values = nullptr;  // nullptr: `shared`
  int64_t sequence_stride = 0, head_stride = 0;
  int32_t group = 1;

  [[nodiscard]] float of(int32_t sequence, int32_t head) const {
    if (values == nullptr) return shared;
    return values[sequence * sequence_stride + head / group * head_stride];
  }
};

// The pages of each sequence in compressed sparse rows (pagoda::CsrPages).
struct CsrRows {
  std::span<const int32_t> indptr, indices, last_page_len;
};

struct Problem {
  int32_t batch = 0;
  int32_t num_q_heads = 0;
  int32_t num_kv_heads = 0;
  int32_t group = 0;  // num_q_heads / num_kv_heads
  int32_t head_dim_qk = 0;
  int32_t head_dim_vo = 0;
  // Padded: the padded length. Ragged: the longest sequence, or its bound.
  int32_t max_seqlen_q = 0;
  int64_t total_q = 0;  // ragged: rows of Q
  bool is_ragged = false;

  // Where all memory below is. If it is not host memory, only kernels read the arrays: host code
  // uses the bounds instead of lengths, and plans depend on nothing else.
  Device device{};
  bool has_host_lengths = true;
  int32_t max_seqlen_q_bound = 0;   // no sequence has more valid query rows; <= max_seqlen_q
  int32_t max_seqlen_kv_bound = 0;  // no sequence has more keys

  RowView q, out, lse, row_max;  // lse, row_max: data == nullptr = not requested
  KVView k, v;
  KVKind kv_kind = KVKind::kDense;
  int32_t page_size = 0;
  int64_t num_pages = 0;  // paged: pages of the pool
  int64_t total_kv = 0;   // ragged: rows of K and V

  float softmax_scale = 1;  // times q_scale, and the shared K scale of a 16- or 32-bit cache
  float lse_factor = 1;     // LSE = natural logarithm * lse_factor
  float out_scale = 1;      // stored O = O / out_scale
  // Borrowed from the caller: masks, score mods, sinks, scales, index arrays.
  std::span<const int32_t> cu_seqlens_q, seqlens_q_valid, cache_lengths;
  std::span<const int32_t> leftpad_kv;     // may be empty
  std::span<const int32_t> seqlens_kv;     // dense and ragged (may be empty), block table
  std::span<const int32_t> cu_seqlens_kv;  // ragged
  int64_t max_seqlen_kv = 0;               // dense: the padded length
  MatrixView<int32_t> block_table;         // paged, data != nullptr
  CsrRows csr;                             // paged otherwise
  std::span<const MaskNode> mask;          // postfix, root last
  ScoreMod score_mod;
  Functor functor;
  std::span<const float> sinks;
  HeadScales q_scales;            // per head only: 1 otherwise
  HeadScales k_scales, v_scales;  // of KV heads
  bool zero_padding_rows = false;

  // The functions below require has_host_lengths.
  [[nodiscard]] int32_t seqlen_q(int32_t b) const {
    assert(has_host_lengths);
    const auto i = static_cast<size_t>(b);
    return seqlens_q_valid.empty() ? num_rows(b) : seqlens_q_valid[i];
  }
  // Rows of Q and of the outputs, padding rows included.
  [[nodiscard]] int32_t num_rows(int32_t b) const {
    assert(has_host_lengths);
    const auto i = static_cast<size_t>(b);
    return is_ragged ? cu_seqlens_q[i + 1] - cu_seqlens_q[i] : max_seqlen_q;
  }
  // Rows of K and V before key 0.
  [[nodiscard]] int32_t leftpad(int32_t b) const {
    return leftpad_kv.empty() ? 0 : leftpad_kv[static_cast<size_t>(b)];
  }
  [[nodiscard]] int32_t seqlen_kv(int32_t b) const { return used_rows_kv(b) - leftpad(b); }
  // Rows of K and V up to the last key, left padding included.
  [[nodiscard]] int32_t used_rows_kv(int32_t b) const {
    assert(has_host_lengths);
    const auto i = static_cast<size_t>(b);
    if (!seqlens_kv.empty()) return seqlens_kv[i];
    if (kv_kind == KVKind::kRagged) return cu_seqlens_kv[i + 1] - cu_seqlens_kv[i];
    if (kv_kind == KVKind::kPaged && block_table.data == nullptr) {
      const int32_t pages = csr.indptr[i + 1] - csr.indptr[i];
      return pages == 0 ? 0 : (pages - 1) * page_size + csr.last_page_len[i];
    }
    return static_cast<int32_t>(max_seqlen_kv);
  }
  // Position of query row 0; may be negative (fewer keys than queries).
  [[nodiscard]] int32_t q_position(int32_t b) const {
    assert(has_host_lengths);
    return cache_lengths.empty() ? seqlen_kv(b) - seqlen_q(b)
                                 : cache_lengths[static_cast<size_t>(b)];
  }
  // First row of sequence b in a ragged tensor; 0 for padded ones.
  [[nodiscard]] int64_t q_begin(int32_t b) const {
    return is_ragged ? cu_seqlens_q[static_cast<size_t>(b)] : 0;
  }
  [[nodiscard]] int64_t row_offset(const RowView& view, int32_t b, int64_t row,
                                   int32_t head) const {
    return b * view.sequence_stride + (q_begin(b) + row) * view.row_stride +
           head * view.head_stride;
  }
  [[nodiscard]] int64_t page(int32_t b, int64_t index) const {
    if (block_table.data != nullptr) {
      return block_table.data[b * block_table.row_stride + index];
    }
    return csr.indices[static_cast<size_t>(csr.indptr[static_cast<size_t>(b)] + index)];
  }
  // Element offset of key (or value) `key` of sequence b, key head h.
  [[nodiscard]] int64_t kv_offset(const KVView& view, int32_t b, int64_t key, int32_t head) const {
    int64_t offset = head * view.head_stride;
    const int64_t row = leftpad(b) + key;
    switch (kv_kind) {
      case KVKind::kDense: return offset + b * view.outer_stride + row * view.row_stride;
      case KVKind::kRagged:
        return offset + (cu_seqlens_kv[static_cast<size_t>(b)] + row) * view.row_stride;
      case KVKind::kPaged:
        return offset + page(b, row / page_size) * view.outer_stride +
               (row % page_size) * view.row_stride;
    }
    return offset;
  }
  // From products of stored Q and K to scores, before soft cap and biases.
  [[nodiscard]] float score_scale(int32_t b, int32_t q_head) const {
    return softmax_scale * q_scales.of(b, q_head) * k_scales.of(b, q_head / group);
  }
  // From sums of stored V to stored O.
  [[nodiscard]] float o_scale(int32_t b, int32_t kv_head) const {
    return v_scales.of(b, kv_head) / out_scale;
  }
};

}  // namespace pagoda::core
