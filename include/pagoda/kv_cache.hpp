// KVCache: dense, ragged or paged keys and values. Nothing here owns memory.
#pragma once

#include <cstdint>
#include <variant>

#include "pagoda/array_view.hpp"
#include "pagoda/tensor.hpp"

namespace pagoda {

// Sequences padded to one length.
struct DenseKV {
  ConstTensor k{};                  // [batch, max_seqlen_kv, num_kv_heads, head_dim_qk]
  ConstTensor v{};                  // [batch, max_seqlen_kv, num_kv_heads, head_dim_vo]
  ArrayView<int32_t> seqlens_kv{};  // [batch], valid keys; empty = all max_seqlen_kv
};

// Sequences back to back. Their lengths need not match Q's (cross attention).
struct RaggedKV {
  ConstTensor k{};                     // [total_kv, num_kv_heads, head_dim_qk]
  ConstTensor v{};                     // [total_kv, num_kv_heads, head_dim_vo]
  ArrayView<int32_t> cu_seqlens_kv{};  // [batch + 1], starts at 0, non-decreasing
  ArrayView<int32_t> seqlens_kv{};     // [batch], used keys of each sequence; empty = all
};

enum class PageLayout : uint8_t {
  kNHD,  // [num_pages, page_size, num_kv_heads, head_dim]
  kHND,  // [num_pages, num_kv_heads, page_size, head_dim]
};

// The pages of each sequence as rows of a matrix (vLLM, FlashAttention).
struct BlockTable {
  MatrixView<int32_t> pages{};  // [batch, max_pages_per_seq], entry = page index in k and v
  // [batch], keys of each sequence; row b uses its first ceil(seqlens_kv[b] / page_size) entries.
  ArrayView<int32_t> seqlens_kv{};
};

// The pages of each sequence in compressed sparse rows (FlashInfer).
struct CsrPages {
  ArrayView<int32_t> indptr{};         // [batch + 1], starts at 0, non-decreasing
  ArrayView<int32_t> indices{};        // [indptr[batch]], entry = page index in k and v
  ArrayView<int32_t> last_page_len{};  // [batch], 1..page_size; ignored where a row is empty
};

using PageTable = std::variant<BlockTable, CsrPages>;

// Fixed-size pages of tokens in a shared pool. `k` and `v` may be two allocations or two views of
// one ([pages, 2, ...]): their strides are independent. Slots past the end of a sequence never
// affect a result and may hold anything, including NaN.
struct PagedKV {
  ConstTensor k{};  // by `layout`, last dimension head_dim_qk
  ConstTensor v{};  // by `layout`, last dimension head_dim_vo
  PageLayout layout = PageLayout::kNHD;
  PageTable table{};
  // Optional, 0 = as the shape says: must equal what `layout` reads from the shape. HND pages that
  // are read as NHD have a valid shape, too; this finds them.
  int32_t page_size = 0;
};

using KVCache = std::variant<DenseKV, RaggedKV, PagedKV>;

// Dequantisation of a cache: value = scale * stored element. Scales per head, if given, replace the
// one of the tensor: fp32 [num_kv_heads], or [batch, num_kv_heads]; any strides, 0 shares a value.
// append_kv() requires the defaults for a 16- or 32-bit cache.
struct KVScales {
  float k = 1.0F;
  float v = 1.0F;
  ConstTensor k_per_head{};
  ConstTensor v_per_head{};
};

}  // namespace pagoda
