// The calls of the plan tests: bf16 queries of 32/8 heads over a dense cache.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "pagoda/dtype.hpp"
#include "pagoda/mask.hpp"

namespace pagoda::mha_sm90 {

// `batch` sequences of up to `tokens` tokens and `keys` keys, causal; lengths on the device.
inline core::Problem dense_problem(int32_t batch, int32_t tokens, int32_t keys, DType cache,
                                   int32_t head_dim = 128) {
  static const Mask mask = Mask::causal();
  core::Problem p;
  p.batch = batch;
  p.num_q_heads = 32;
  p.num_kv_heads = 8;
  p.group = 4;
  p.head_dim_qk = p.head_dim_vo = head_dim;
  p.has_host_lengths = false;
  p.max_seqlen_q = p.max_seqlen_q_bound = tokens;
  p.total_q = batch * tokens;
  p.max_seqlen_kv = p.max_seqlen_kv_bound = keys;
  p.q.dtype = p.out.dtype = DType::kBF16;
  p.k.dtype = p.v.dtype = cache;
  p.q.head_stride = p.out.head_stride = p.k.head_stride = p.v.head_stride = head_dim;
  p.q.row_stride = p.out.row_stride = 32 * head_dim;
  p.q.sequence_stride = p.out.sequence_stride = p.q.row_stride * tokens;
  p.k.row_stride = p.v.row_stride = 8 * head_dim;
  p.k.outer_stride = p.v.outer_stride = p.k.row_stride * keys;
  p.mask = mask.nodes();
  return p;
}

}  // namespace pagoda::mha_sm90
