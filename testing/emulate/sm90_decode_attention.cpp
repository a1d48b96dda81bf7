// Launches of small instances of the attention kernel on KVBuffer that decode in clusters.
#include "kernels/common/kv_buffer/async_buffers.hpp"
#include "kernels/common/kv_buffer/cluster_merge.hpp"
#include "kernels/common/kv_buffer/decode_mainloop.hpp"
#include "kernels/common/kv_buffer/latent_mainloop.hpp"
#include "operand/mma_sync.hpp"
#include "testing/emulate/attention.hpp"
#include "testing/emulate/kv_buffer_attention.hpp"

namespace pagoda::emulate {
namespace {

using kernels::kv_buffer::Staging;

template <int ctas, bool has_tokens = false, Staging staging = Staging::kAsync,
          int depth = AttentionCase::kDepth, bool is_general = false>
struct ClusterConfig {
  using T = arch::BFloat16;
  static constexpr kernels::kv_buffer::TileConfig tile =
      kernels::kv_buffer::decode_tile(depth, has_tokens, is_general, ctas, staging);
};
using WideCase = TypedAttentionCase<arch::BFloat16, arch::BFloat16, 256>;
// Head dim 128: a lane overwrites what others have read. With 64 it is what it has read itself.
using Fp8CacheCase = TypedAttentionCase<arch::BFloat16, arch::Float8E4M3, 128>;
using Fp8Case = TypedAttentionCase<arch::Float8E4M3, arch::Float8E4M3, 128>;
using WideFp8CacheCase = TypedAttentionCase<arch::BFloat16, arch::Float8E4M3, 256>;
using LatentCase = TypedAttentionCase<arch::BFloat16, arch::BFloat16, 512>;
template <int ctas, bool has_tokens>
struct LatentConfig {
  using T = arch::BFloat16;
  static constexpr kernels::kv_buffer::TileConfig tile =
      kernels::kv_buffer::latent_tile(has_tokens, ctas);
};
struct Fp8QueriesConfig {
  using T = arch::BFloat16;
  static constexpr kernels::kv_buffer::TileConfig tile = [] {
    auto tile = ClusterConfig<8, false, Staging::kAsyncFp8, Fp8Case::kDepth>::tile;
    tile.q_bytes = 1;
    return tile;
  }();
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
// Head dim 256, whose KV tiles come in two parts: 15 KV tiles divided among seven pairs, three
// each, and one that is left.
Outcome run_sm90_decode_wide(const emulator::Options& options) {
  const AttentionShape shape{.kernel = "sm90_decode/wide",
                             .sequences = {{1, 300}, {1, 37}, {1, 0}, {1, 500}},
                             .num_kv_heads = 1,
                             .group = 4,
                             .ctas = 16,
                             .schedule = kernels::Schedule::kStreamK,
                             .dim_qk = WideCase::kDepth};
  using Config = ClusterConfig<2, false, Staging::kAsync, WideCase::kDepth>;
  return WideCase(shape, options.seed).run<KVBufferTraits<Config>>(options);
}
// As in one_each, of up to three tokens, over an e4m3 cache, whose KV tiles have 128 keys: up to
// six of a CTA, so that memory is loaded again.
Outcome run_sm90_decode_fp8(const emulator::Options& options) {
  const AttentionShape shape{.kernel = "sm90_decode/e4m3",
                             .sequences = {{2, 822}, {3, 37}, {3, 2}, {1, 0}, {3, 1473}},
                             .num_kv_heads = 1,
                             .group = 4,
                             .ctas = 10,
                             .schedule = kernels::Schedule::kStreamK,
                             .dim_qk = Fp8CacheCase::kDepth,
                             .shares = kernels::DecodeShares::kOneEach};
  using Config = ClusterConfig<2, true, Staging::kAsyncFp8, Fp8CacheCase::kDepth>;
  return Fp8CacheCase(shape, options.seed).run<KVBufferTraits<Config>>(options);
}
// As in clusters, of e4m3 queries over such a cache: four or five of 36 KV tiles.
Outcome run_sm90_decode_fp8_queries(const emulator::Options& options) {
  const AttentionShape shape{.kernel = "sm90_decode/e4m3_queries",
                             .sequences = {{1, 4500}},
                             .num_kv_heads = 1,
                             .group = 12,
                             .ctas = 16,
                             .schedule = kernels::Schedule::kStreamK,
                             .dim_qk = Fp8Case::kDepth};
  return Fp8Case(shape, options.seed).run<KVBufferTraits<Fp8QueriesConfig>>(options);
}
// As in wide, over such a cache: KV tiles of one part, and Q as f16 in shared memory. A sequence
// has three pairs, whose CTAs have up to three KV tiles, so that memory is loaded again.
Outcome run_sm90_decode_fp8_wide(const emulator::Options& options) {
  const AttentionShape shape{.kernel = "sm90_decode/e4m3_wide",
                             .sequences = {{1, 300}, {1, 37}, {1, 0}, {1, 900}},
                             .num_kv_heads = 1,
                             .group = 4,
                             .ctas = 12,
                             .schedule = kernels::Schedule::kStreamK,
                             .dim_qk = WideFp8CacheCase::kDepth};
  using Config = ClusterConfig<2, false, Staging::kAsyncFp8, WideFp8CacheCase::kDepth>;
  return WideFp8CacheCase(shape, options.seed).run<KVBufferTraits<Config>>(options);
}
// The same of latent rows.
Outcome run_sm90_decode_latent(const emulator::Options& options) {
  using Config = LatentConfig<2, false>;
  const AttentionShape shape{.kernel = "sm90_decode/latent",
                             .sequences = {{1, 300}, {1, 37}, {1, 0}, {1, 900}},
                             .num_kv_heads = 1,
                             .group = 4,
                             .ctas = 12,
                             .schedule = kernels::Schedule::kStreamK,
                             .dim_qk = Config::tile.depth_qk,
                             .is_v_inside_k = true};
  return LatentCase(shape, options.seed).run<KVBufferTraits<Config>>(options);
}
// Up to two tokens of 20 heads, which are two row tiles: a pair of CTAs for each, which have up to
// three KV tiles.
Outcome run_sm90_decode_latent_heads(const emulator::Options& options) {
  using Config = LatentConfig<2, true>;
  const AttentionShape shape{.kernel = "sm90_decode/latent_heads",
                             .sequences = {{2, 370}, {1, 37}, {2, 64}},
                             .num_kv_heads = 1,
                             .group = 20,
                             .ctas = 24,
                             .schedule = kernels::Schedule::kStreamK,
                             .dim_qk = Config::tile.depth_qk,
                             .shares = kernels::DecodeShares::kOneEach,
                             .is_v_inside_k = true};
  return LatentCase(shape, options.seed).run<KVBufferTraits<Config>>(options);
}
// More sequences than a warp has lanes, none of which has a second split; CTAs that are left. Three
// KV tiles each, so that the memory of the first is loaded again.
Outcome run_sm90_decode_alike(const emulator::Options& options) {
  AttentionShape shape{.kernel = "sm90_decode/alike",
                       .sequences = {},
                       .num_kv_heads = 1,
                       .group = 4,
                       .ctas = 40,
                       .schedule = kernels::Schedule::kStreamK,
                       .shares = kernels::DecodeShares::kHalvesUnequal};
  for (int i = 0; i < 37; ++i) shape.sequences.push_back({1, 130 + 7 * (i % 9)});
  return AttentionCase(shape, options.seed).run<KVBufferTraits<ClusterConfig<1>>>(options);
}
// A window of 350 keys of up to three tokens, and a soft cap: 21 KV tiles, up to six of a sequence,
// each of which has a pair. Windows begin within a KV tile, and before the first key.
Outcome run_sm90_decode_general(const emulator::Options& options) {
  const AttentionShape shape{.kernel = "sm90_decode/general",
                             .sequences = {{2, 322}, {3, 37}, {3, 2}, {1, 0}, {3, 1473}, {1, 360}},
                             .num_kv_heads = 1,
                             .group = 4,
                             .ctas = 12,
                             .schedule = kernels::Schedule::kStreamK,
                             .window = 349,
                             .softcap = 60};
  using Config = ClusterConfig<2, true, Staging::kAsync, AttentionCase::kDepth, true>;
  return AttentionCase(shape, options.seed).run<KVBufferTraits<Config>>(options);
}
// Each row tile of sequences of any lengths one pair.
Outcome run_sm90_decode_one_each(const emulator::Options& options) {
  const AttentionShape shape{.kernel = "sm90_decode/one_each",
                             .sequences = {{1, 300}, {1, 37}, {1, 0}, {1, 129}},
                             .num_kv_heads = 2,
                             .group = 4,
                             .ctas = 16,
                             .schedule = kernels::Schedule::kStreamK,
                             .shares = kernels::DecodeShares::kOneEach};
  return AttentionCase(shape, options.seed).run<KVBufferTraits<ClusterConfig<2>>>(options);
}

}  // namespace pagoda::emulate
