// Each call in the words of its peer: the comments name its arguments.
#include "calls.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/element.hpp"

namespace pagoda::test {
namespace {

constexpr DType kBF16 = DType::kBF16, kF16 = DType::kF16, kF8 = DType::kF8E4M3;
constexpr int64_t kHeads = 4, kKVHeads = 2, kDim = 64;

// --- FlashAttention (hopper/flash_attn_interface.py, flash_attn/cute/interface.py) --------------

// flash_attn_func(q, k, v, causal=True, window_size=(20, 0), softcap=15)
Attention fa_func(CallMemory& m) {
  Attention a;
  a.q = m.values(kBF16, {2, 33, kHeads, kDim});
  a.kv = DenseKV{.k = m.values(kBF16, {2, 40, kKVHeads, kDim}),
                 .v = m.values(kBF16, {2, 40, kKVHeads, kDim})};
  a.mask = Mask::window(20, 0);
  a.score_mod.softcap = 15;
  a.out = m.output(kBF16, {2, 33, kHeads, kDim});
  return a;
}

// flash_attn_varlen_func(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, seqused_q,
// seqused_k, causal=True, return_attn_probs=True): softmax_lse is (nheads, total_q)
Attention fa_varlen(CallMemory& m) {
  Attention a;
  a.q = m.values(kF16, {30, kHeads, kDim});
  a.cu_seqlens_q = m.ints({0, 20, 30});
  a.seqlens_q = m.ints({17, 10});
  a.kv = RaggedKV{.k = m.values(kF16, {90, kKVHeads, kDim}),
                  .v = m.values(kF16, {90, kKVHeads, kDim}),
                  .cu_seqlens_kv = m.ints({0, 50, 90}),
                  .seqlens_kv = m.ints({50, 31})};
  a.max_seqlen_q = 20;
  a.max_seqlen_kv = 50;
  a.mask = Mask::causal();
  a.out = m.output(kF16, {30, kHeads, kDim});
  a.lse = m.output(DType::kF32, {kHeads, 30}).transposed(0, 1);
  return a;
}

// flash_attn_with_kvcache(q, k_cache, v_cache, cache_seqlens, cache_leftpad, causal=True,
// return_softmax_lse=True): softmax_lse is (batch, nheads, seqlen_q); the padding holds NaN
Attention fa_kvcache_leftpad(CallMemory& m) {
  Attention a;
  a.q = m.values(kBF16, {2, 3, kHeads, kDim});
  a.kv = DenseKV{.k = m.values(kBF16, {2, 96, kKVHeads, kDim}, 5),
                 .v = m.values(kBF16, {2, 96, kKVHeads, kDim}, 5),
                 .seqlens_kv = m.ints({90, 45})};
  a.leftpad_kv = m.ints({5, 21});
  a.mask = Mask::causal();
  a.out = m.output(kBF16, {2, 3, kHeads, kDim});
  a.lse = m.output(DType::kF32, {2, kHeads, 3}).transposed(1, 2);
  return a;
}

// flash_attn_with_kvcache(q, k_cache, v_cache, cache_seqlens, page_table, cache_leftpad, k_descale,
// v_descale, num_splits=3) over an e4m3 cache; the descales are (batch, nheads_k)
Attention fa_kvcache_paged(CallMemory& m) {
  Attention a;
  a.q = m.values(kBF16, {2, 1, kHeads, kDim});
  a.kv =
      PagedKV{.k = m.values(kF8, {24, 16, kKVHeads, kDim}),
              .v = m.values(kF8, {24, 16, kKVHeads, kDim}),
              .table = BlockTable{
                  MatrixView<int32_t>::contiguous(
                      m.ints({3, 9, 1, 20, 7, 8, 4, 5, 0, 23, 2, 11, 6, 10, 19, 22}).data(), 2, 8),
                  m.ints({128, 77})}};
  a.leftpad_kv = m.ints({7, 40});
  a.kv_scales.k_per_head = m.scales({2, kKVHeads});
  a.kv_scales.v_per_head = m.scales({2, kKVHeads});
  a.out = m.output(kBF16, {2, 1, kHeads, kDim});
  return a;
}

// flash_attn_with_kvcache(q, k_cache, v_cache, cache_seqlens, cache_batch_idx): the cache of a
// sequence is one page
Attention fa_kvcache_batch_idx(CallMemory& m) {
  Attention a;
  a.q = m.values(kF16, {3, 2, kHeads, kDim});
  a.kv =
      PagedKV{.k = m.values(kF16, {5, 48, kKVHeads, kDim}),
              .v = m.values(kF16, {5, 48, kKVHeads, kDim}),
              .table = BlockTable{MatrixView<int32_t>::contiguous(m.ints({4, 0, 2}).data(), 3, 1),
                                  m.ints({48, 5, 30})}};
  a.mask = Mask::causal();
  a.out = m.output(kF16, {3, 2, kHeads, kDim});
  return a;
}

// flash_attn_varlen_func of e4m3 tensors with q_descale, k_descale, v_descale (batch, nheads_k), of
// which an engine expands one number: strides of 0
Attention fa_fp8(CallMemory& m) {
  Attention a;
  a.q = m.values(kF8, {21, kHeads, kDim});
  a.cu_seqlens_q = m.ints({0, 20, 21});
  a.kv = RaggedKV{.k = m.values(kF8, {80, kKVHeads, kDim}),
                  .v = m.values(kF8, {80, kKVHeads, kDim}),
                  .cu_seqlens_kv = m.ints({0, 33, 80})};
  a.q_scale_per_head = m.scales({2, kKVHeads});
  a.kv_scales.k_per_head = m.scales({2, kKVHeads});
  a.kv_scales.v_per_head = m.scales({2, kKVHeads});
  a.kv_scales.v_per_head.strides = {};
  a.mask = Mask::causal();
  a.out = m.output(kBF16, {21, kHeads, kDim});
  return a;
}

// flash_attn_varlen_func(q, k, v, cu_seqlens_q, seqused_k, page_table, learnable_sink), where a
// captured graph has more rows than the batch
Attention fa_varlen_paged(CallMemory& m) {
  Attention a;
  a.q = m.values(kBF16, {40, kHeads, kDim});
  a.cu_seqlens_q = m.ints({0, 1, 12, 12});
  a.zero_padding_rows = true;
  a.kv = PagedKV{
      .k = m.values(kBF16, {6, 32, kKVHeads, kDim}),
      .v = m.values(kBF16, {6, 32, kKVHeads, kDim}),
      .table = BlockTable{MatrixView<int32_t>::contiguous(m.ints({2, 0, 1, 5, 3, 4}).data(), 3, 2),
                          m.ints({64, 40, 0})}};
  a.sinks = m.floats({0.5F, -1, 0, 2});
  a.mask = Mask::causal();
  a.out = m.output(kBF16, {40, kHeads, kDim});
  a.lse = m.output(DType::kF32, {kHeads, 40}).transposed(0, 1);
  return a;
}

// flash_attn_func(q, k, v, causal=True, attention_chunk=16)
Attention fa_chunks(CallMemory& m) {
  Attention a = fa_func(m);
  a.score_mod = {};
  a.mask = Mask::chunked(16) & Mask::causal();
  return a;
}

// --- FlashInfer (flashinfer/prefill.py, decode.py, mla.py): LSEs are to base 2 -------------------

// single_prefill_with_kv_cache(q, k, v, custom_mask, kv_layout="HND", return_lse=True)
Attention fi_single_prefill(CallMemory& m) {
  Attention a;
  a.q = m.values(kF16, {1, 9, kHeads, kDim});
  a.kv = DenseKV{.k = m.values(kF16, {1, kKVHeads, 50, kDim}).transposed(1, 2),
                 .v = m.values(kF16, {1, kKVHeads, 50, kDim}).transposed(1, 2)};
  std::vector<uint32_t> words(static_cast<size_t>(9 * 2));
  std::mt19937 random(3);
  for (uint32_t& word : words) word = static_cast<uint32_t>(random()) | 1U;
  a.mask = Mask::bits(m.words(words), m.longs({0, 18}));
  a.out = m.output(kF16, {1, 9, kHeads, kDim});
  a.lse = m.output(DType::kF32, {1, 9, kHeads});
  a.lse_base = LogBase::k2;
  return a;
}

// BatchPrefillWithPagedKVCacheWrapper: plan(qo_indptr, paged_kv_indptr, paged_kv_indices,
// paged_kv_last_page_len, causal=True, window_left=30, logits_soft_cap=20), run(q, paged_kv_cache,
// k_scale, v_scale, return_lse=True) over one tensor [pages, 2, heads, page_size, dim]
Attention fi_batch_prefill(CallMemory& m) {
  Attention a;
  a.q = m.values(kBF16, {37, kHeads, kDim});
  a.cu_seqlens_q = m.ints({0, 3, 30, 37});
  const ConstTensor pool = m.values(kBF16, {12, 2, kKVHeads, 16, kDim});
  PagedKV kv{.layout = PageLayout::kHND,
             .table = CsrPages{m.ints({0, 4, 8, 9}), m.ints({11, 2, 3, 0, 7, 8, 1, 5, 9}),
                               m.ints({16, 1, 9})}};
  kv.k = {pool.data, kBF16, 4, {12, kKVHeads, 16, kDim}, {}};
  kv.k.strides = {pool.strides[0], pool.strides[2], pool.strides[3], 1};
  kv.v = kv.k;
  kv.v.data = static_cast<const std::byte*>(pool.data) + pool.strides[1] * size_bytes(kBF16);
  a.kv = kv;
  a.kv_scales = {.k = 0.8F, .v = 1.5F};
  a.mask = Mask::window(30, 0);
  a.score_mod.softcap = 20;
  a.out = m.output(kBF16, {37, kHeads, kDim});
  a.lse = m.output(DType::kF32, {37, kHeads});
  a.lse_base = LogBase::k2;
  return a;
}

// BatchDecodeWithPagedKVCacheWrapper: pos_encoding_mode="ALIBI", an e4m3 cache, O in e4m3
Attention fi_batch_decode(CallMemory& m) {
  Attention a;
  a.q = m.values(kF16, {3, 1, kHeads, kDim});
  a.kv = PagedKV{.k = m.values(kF8, {9, 16, kKVHeads, kDim}),
                 .v = m.values(kF8, {9, 16, kKVHeads, kDim}),
                 .table = CsrPages{m.ints({0, 5, 5, 8}), m.ints({1, 8, 3, 0, 7, 2, 6, 5}),
                                   m.ints({7, 1, 16})}};
  a.kv_scales = {.k = 0.5F, .v = 2};
  a.score_mod.alibi_slopes = m.floats({0.5F, 0.25F, 0.125F, 0.0625F});
  a.out = m.output(kF8, {3, 1, kHeads, kDim});
  a.out_scale = 0.05F;
  return a;
}

// BatchPrefillWithRaggedKVCacheWrapper: plan(qo_indptr, kv_indptr, head_dim_qk=192, head_dim_vo=128)
Attention fi_ragged(CallMemory& m) {
  Attention a;
  a.q = m.values(kBF16, {24, 2, 192});
  a.cu_seqlens_q = m.ints({0, 20, 24});
  a.kv = RaggedKV{.k = m.values(kBF16, {60, 2, 192}),
                  .v = m.values(kBF16, {60, 2, 128}),
                  .cu_seqlens_kv = m.ints({0, 20, 60})};
  a.mask = Mask::causal();
  a.out = m.output(DType::kF32, {24, 2, 128});
  return a;
}

// BatchMLAPagedAttentionWrapper: ckv and kpe in one row of 576
Attention fi_mla(CallMemory& m) {
  Attention a;
  a.q = m.values(kBF16, {2, 1, 8, 576});
  const ConstTensor cache = m.values(kBF16, {4, 32, 1, 576});
  PagedKV kv{.k = cache,
             .v = cache,
             .table = BlockTable{MatrixView<int32_t>::contiguous(m.ints({1, 3, 0, 2}).data(), 2, 2),
                                 m.ints({50, 33})}};
  kv.v.shape[3] = 512;
  a.kv = kv;
  a.mask = Mask::causal();
  a.out = m.output(kBF16, {2, 1, 8, 512});
  return a;
}

// single_prefill_with_kv_cache(q, k, v, scale_q, scale_k, scale_v): e4m3, a scale per head
Attention fi_fp8(CallMemory& m) {
  Attention a;
  a.q = m.values(kF8, {1, 21, kHeads, kDim});
  a.kv = DenseKV{.k = m.values(kF8, {1, 30, kKVHeads, kDim}),
                 .v = m.values(kF8, {1, 30, kKVHeads, kDim})};
  a.q_scale_per_head = m.scales({kHeads});
  a.kv_scales.k_per_head = m.scales({kKVHeads});
  a.kv_scales.v_per_head = m.scales({kKVHeads});
  a.mask = Mask::causal();
  a.out = m.output(kF16, {1, 21, kHeads, kDim});
  return a;
}

}  // namespace

std::span<const PeerCall> flash_attention_calls() {
  static constexpr PeerCall kCalls[] = {{"flash_attn_func", fa_func},
                                        {"attention_chunk", fa_chunks},
                                        {"varlen_seqused", fa_varlen},
                                        {"kvcache_leftpad", fa_kvcache_leftpad},
                                        {"kvcache_paged_descales_splits", fa_kvcache_paged, 3},
                                        {"kvcache_batch_idx", fa_kvcache_batch_idx},
                                        {"varlen_paged_padded_graph", fa_varlen_paged},
                                        {"fp8_descales", fa_fp8, 0, true}};
  return kCalls;
}

std::span<const PeerCall> flashinfer_calls() {
  static constexpr PeerCall kCalls[] = {{"single_prefill_custom_mask", fi_single_prefill},
                                        {"batch_prefill_paged", fi_batch_prefill},
                                        {"batch_decode_paged", fi_batch_decode},
                                        {"batch_prefill_ragged", fi_ragged},
                                        {"mla_paged", fi_mla},
                                        {"fp8_scales_per_head", fi_fp8, 0, true}};
  return kCalls;
}

// --- memory --------------------------------------------------------------------------------------

ConstTensor CallMemory::values(DType dtype, std::initializer_list<int64_t> shape,
                               int64_t nan_rows) {
  const Tensor t = output(dtype, shape);
  std::normal_distribution<float> normal;
  const int64_t count = t.shape[0] * t.strides[0];
  for (int64_t i = 0; i < count; ++i) {
    const bool is_nan = i / t.strides[1] % t.shape[1] < nan_rows;
    const float value = normal(random_);
    core::store_element(t.data, dtype, i, is_nan ? std::nanf("") : value);
  }
  return t;
}

ConstTensor CallMemory::scales(std::initializer_list<int64_t> shape) {
  const Tensor t = output(DType::kF32, shape);
  std::uniform_real_distribution<float> around_1(0.5F, 1.5F);
  for (int64_t i = 0; i < t.shape[0] * t.strides[0]; ++i) {
    static_cast<float*>(t.data)[i] = around_1(random_);
  }
  return t;
}

Tensor CallMemory::output(DType dtype, std::initializer_list<int64_t> shape) {
  Tensor t = Tensor::contiguous(nullptr, dtype, shape);
  const auto bytes = static_cast<size_t>(t.shape[0] * t.strides[0] * size_bytes(dtype));
  t.data = tensors_.emplace_back(bytes, std::byte{0xff}).data();
  return t;
}

template <typename T>
ArrayView<T> CallMemory::keep(std::deque<std::vector<T>>& all, std::vector<T> values) {
  return all.emplace_back(std::move(values));
}
ArrayView<int32_t> CallMemory::ints(std::vector<int32_t> values) {
  return keep(ints_, std::move(values));
}
ArrayView<float> CallMemory::floats(std::vector<float> values) {
  return keep(floats_, std::move(values));
}
ArrayView<uint32_t> CallMemory::words(std::vector<uint32_t> values) {
  return keep(words_, std::move(values));
}
ArrayView<int64_t> CallMemory::longs(std::vector<int64_t> values) {
  return keep(longs_, std::move(values));
}

}  // namespace pagoda::test
