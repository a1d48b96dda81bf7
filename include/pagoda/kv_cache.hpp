// Where keys and values are: dense, ragged or paged. Values only; nothing here owns memory.
#pragma once

#include <cstdint>
#include <span>
#include <variant>

#include "pagoda/tensor.hpp"

namespace pagoda {

// One sequence after another, each padded to the same length.
struct DenseKV {
  ConstTensor k{};                        // [batch, max_seqlen_kv, num_kv_heads, head_dim_qk]
  ConstTensor v{};                        // [batch, max_seqlen_kv, num_kv_heads, head_dim_vo]
  std::span<const int32_t> seqlens_kv{};  // [batch], valid keys; empty = all max_seqlen_kv
};

// Sequences back to back, with offsets of their own (cross attention: they need not match Q's).
struct RaggedKV {
  ConstTensor k{};                           // [total_kv, num_kv_heads, head_dim_qk]
  ConstTensor v{};                           // [total_kv, num_kv_heads, head_dim_vo]
  std::span<const int32_t> cu_seqlens_kv{};  // [batch + 1], starts at 0, non-decreasing
};

enum class PageLayout : uint8_t {
  kNHD,  // [num_pages, page_size, num_kv_heads, head_dim]
  kHND,  // [num_pages, num_kv_heads, page_size, head_dim]
};

// The pages of each sequence as rows of a matrix (vLLM, FlashAttention).
struct BlockTable {
  const int32_t* pages = nullptr;  // [batch, max_pages_per_seq], entry = page index in k and v
  int64_t max_pages_per_seq = 0;
  int64_t row_stride = 0;  // elements from one sequence's row to the next
  std::span<const int32_t>
      seqlens_kv{};  // [batch]; ceil(seqlen / page_size) entries of a row are used
};

// The same as compressed rows (FlashInfer).
struct CsrPages {
  std::span<const int32_t> indptr{};         // [batch + 1], starts at 0, non-decreasing
  std::span<const int32_t> indices{};        // [indptr[batch]], entry = page index in k and v
  std::span<const int32_t> last_page_len{};  // [batch], 1..page_size; ignored where a row is empty
};

using PageTable = std::variant<BlockTable, CsrPages>;

// Fixed-size pages of tokens in a shared pool. `k` and `v` may be two allocations or two views of
// one ([pages, 2, ...]): their strides are independent. Slots past a sequence's end are never read
// into a result and may hold anything.
struct PagedKV {
  ConstTensor k{};  // by `layout`, last dimension head_dim_qk
  ConstTensor v{};  // by `layout`, last dimension head_dim_vo
  PageLayout layout = PageLayout::kNHD;
  PageTable table{};
};

using KVCache = std::variant<DenseKV, RaggedKV, PagedKV>;

// What a stored fp8 element is worth: value = scale * element. A per-head scale, where given,
// replaces the per-tensor one. Must be left at the defaults for 16- and 32-bit caches.
struct KVScales {
  float k = 1.0F;
  float v = 1.0F;
  std::span<const float> k_per_head{};  // [num_kv_heads] or empty
  std::span<const float> v_per_head{};  // [num_kv_heads] or empty
};

}  // namespace pagoda
