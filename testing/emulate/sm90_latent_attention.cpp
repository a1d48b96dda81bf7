// Launches of a small instance of the Hopper attention kernel for latent attention: V is the first
// 128 of 192 columns of K, of which each of two warpgroups has 64.
#include "kernels/mha_sm90/kernel.hpp"
#include "testing/emulate/attention.hpp"
#include "testing/emulate/attention_case.hpp"

namespace pagoda::emulate {
namespace {

using LatentCase = TypedAttentionCase<arch::BFloat16, arch::BFloat16, 128>;
constexpr int kDimQk = 192;

struct LatentConfig {
  using T = arch::BFloat16;
  static constexpr mha_sm90::TileConfig tile{.depth_qk = kDimQk,
                                             .depth_vo = LatentCase::kDepth,
                                             .BN = 32,
                                             .num_consumers = 1,
                                             .v_stages = 1,
                                             .rows = mha_sm90::RowKind::kPacked,
                                             .is_latent = true,
                                             .is_ping_pong = false,
                                             .producer_registers = 56,
                                             .consumer_registers = 224};
};

struct LatentTraits {
  using Config = LatentConfig;
  using Kernel = mha_sm90::Kernel<Config>;
  static constexpr int block_rows = mha_sm90::kRows, blocks = Config::tile.num_multiplying();
  static constexpr bool fuses_heads = false;
};

}  // namespace

// Two head tiles, of which one has 16 rows, of up to two tokens: two groups of four CTAs have 15 of
// 30 KV tiles each, with parts of row tiles and whole ones. Four sequences have one token.
Outcome run_latent(const emulator::Options& options) {
  const AttentionShape shape{
      .kernel = "sm90/latent",
      .sequences = {{1, 300}, {2, 37}, {1, 0}, {1, 260}, {2, 90}, {2, 40}, {1, 70}},
      .num_kv_heads = 1,
      .group = 80,
      .ctas = 8,
      .packed_heads = mha_sm90::kRows,
      .dim_qk = kDimQk,
      .is_v_inside_k = true,
      .side_by_side = 4};
  return LatentCase(shape, options.seed).run<LatentTraits>(options);
}
// The same for windows, whose work tiles are those of any packed rows (StreamKWork).
Outcome run_latent_window(const emulator::Options& options) {
  const AttentionShape shape{.kernel = "sm90/latent_window",
                             .sequences = {{2, 300}, {1, 37}, {3, 190}},
                             .num_kv_heads = 1,
                             .group = 4,
                             .ctas = 5,
                             .packed_heads = 4,
                             .is_merge_shared = true,
                             .dim_qk = kDimQk,
                             .window = 100,
                             .is_v_inside_k = true};
  return LatentCase(shape, options.seed).run<LatentTraits>(options);
}
// Tokens of four heads; five CTAs each merge a part of the columns of a row tile, two of another.
Outcome run_latent_shared_merge(const emulator::Options& options) {
  const AttentionShape shape{.kernel = "sm90/latent_shared_merge",
                             .sequences = {{3, 600}, {2, 150}},
                             .num_kv_heads = 1,
                             .group = 4,
                             .ctas = 8,
                             .packed_heads = 4,
                             .is_merge_shared = true,
                             .dim_qk = kDimQk,
                             .is_v_inside_k = true};
  return LatentCase(shape, options.seed).run<LatentTraits>(options);
}

}  // namespace pagoda::emulate
