// Launches of small instances of the attention kernel on KVBuffer that decode in clusters.
#include "kernels/common/kv_buffer/async_buffers.hpp"
#include "kernels/common/kv_buffer/cluster_merge.hpp"
#include "kernels/common/kv_buffer/decode_mainloop.hpp"
#include "operand/mma_sync.hpp"
#include "testing/emulate/attention.hpp"
#include "testing/emulate/kv_buffer_attention.hpp"

namespace pagoda::emulate {
namespace {

using kernels::kv_buffer::Staging;

template <int ctas, bool has_tokens = false, Staging staging = Staging::kAsync>
struct ClusterConfig {
  using T = arch::BFloat16;
  static constexpr kernels::kv_buffer::TileConfig tile =
      kernels::kv_buffer::decode_tile(AttentionCase::kDepth, has_tokens, ctas, staging);
};

}  // namespace

// One token of four heads each: 39 KV tiles divided among nine pairs, five each. Sequences have one
// to five pairs, nine in all, and a pair is left; a CTA has three KV tiles, two, one or none.
Outcome run_sm90_decode_pairs(const emulator::Options& options) {
  const AttentionShape shape{.kernel = "sm90_decode/pairs",
                             .sequences = {{1, 700}, {1, 37}, {1, 0}, {1, 1660}},
                             .num_kv_heads = 1,
                             .group = 4,
                             .ctas = 20,
                             .schedule = kernels::Schedule::kStreamK};
  return AttentionCase(shape, options.seed).run<KVBufferTraits<ClusterConfig<2>>>(options);
}
// A cluster, whose CTAs have two or three of 17 KV tiles, and one that is left.
Outcome run_sm90_decode_clusters(const emulator::Options& options) {
  const AttentionShape shape{.kernel = "sm90_decode/clusters",
                             .sequences = {{1, 1050}},
                             .num_kv_heads = 1,
                             .group = 12,
                             .ctas = 16,
                             .schedule = kernels::Schedule::kStreamK};
  return AttentionCase(shape, options.seed).run<KVBufferTraits<ClusterConfig<8>>>(options);
}
// Up to three tokens of four heads, whose last ones some rows do not see: as in pairs, of which
// none is left.
Outcome run_sm90_decode_tokens(const emulator::Options& options) {
  const AttentionShape shape{.kernel = "sm90_decode/tokens",
                             .sequences = {{2, 322}, {3, 37}, {3, 2}, {1, 0}, {3, 1473}},
                             .num_kv_heads = 1,
                             .group = 4,
                             .ctas = 18,
                             .schedule = kernels::Schedule::kStreamK};
  return AttentionCase(shape, options.seed).run<KVBufferTraits<ClusterConfig<2, true>>>(options);
}
// Up to six tokens of four heads, four in the first row tile of a KV head: 31 KV tiles of each,
// divided among fifteen pairs, five each. One sequence has no second row tile.
Outcome run_sm90_decode_row_tiles(const emulator::Options& options) {
  const AttentionShape shape{.kernel = "sm90_decode/row_tiles",
                             .sequences = {{6, 322}, {3, 37}, {5, 1473}},
                             .num_kv_heads = 1,
                             .group = 4,
                             .ctas = 32,
                             .schedule = kernels::Schedule::kStreamK};
  return AttentionCase(shape, options.seed).run<KVBufferTraits<ClusterConfig<2, true>>>(options);
}
// As in pairs, with 48 of the 64 columns of K.
Outcome run_sm90_decode_narrow(const emulator::Options& options) {
  const AttentionShape shape{.kernel = "sm90_decode/narrow",
                             .sequences = {{1, 700}, {1, 37}, {1, 0}, {1, 1660}},
                             .num_kv_heads = 1,
                             .group = 4,
                             .ctas = 20,
                             .schedule = kernels::Schedule::kStreamK,
                             .dim_qk = 48};
  using Config = ClusterConfig<2, false, Staging::kAsyncNarrow>;
  return AttentionCase(shape, options.seed).run<KVBufferTraits<Config>>(options);
}

}  // namespace pagoda::emulate
