// Calls for small instances of the attention kernel on KVBuffer.
#pragma once

#include "kernels/common/kv_buffer/kernel.hpp"
#include "testing/emulate/attention_case.hpp"

namespace pagoda::emulate {

template <class Config_>
struct KVBufferTraits {
  using Config = Config_;
  static constexpr int least_arch = Config::tile.warp_size == 64 ? 942
                                    : Config::tile.is_latent()   ? 90
                                                                 : 80;
  using Kernel = kernels::kv_buffer::Kernel<Config, least_arch>;
  static constexpr int block_rows = Config::tile.BM, blocks = 1;
  static constexpr bool fuses_heads = false;
};

// Row tiles of two heads: sequences end inside tiles and pages, one has no keys.
inline AttentionShape prefill_shape(const char* kernel, int32_t ctas) {
  return {.kernel = kernel,
          .sequences = {{40, 45}, {9, 0}, {33, 130}},
          .num_kv_heads = 1,
          .group = 2,
          .ctas = ctas,
          .schedule = kernels::Schedule::kTransient};
}
// Up to three tokens of four heads; eleven KV tiles a KV head on six CTAs.
inline AttentionShape token_shape(const char* kernel) {
  return {.kernel = kernel,
          .sequences = {{2, 150}, {1, 37}, {2, 0}, {3, 290}},
          .num_kv_heads = 2,
          .group = 4,
          .ctas = 6,
          .schedule = kernels::Schedule::kStreamK};
}
// Nine tiles of 32 keys in three splits, which the last CTA to finish merges.
inline AttentionShape split_shape(const char* kernel, int32_t ctas) {
  return {.kernel = kernel,
          .sequences = {{35, 280}, {20, 20}, {5, 0}},
          .num_kv_heads = 1,
          .group = 1,
          .ctas = ctas,
          .num_splits = 3,
          .schedule = kernels::Schedule::kTransient};
}

}  // namespace pagoda::emulate
