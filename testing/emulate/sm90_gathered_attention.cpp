// A launch of a small instance of the Hopper attention kernel with gathered K and V.
#include "kernels/mha_sm90/kernel.hpp"
#include "testing/emulate/attention.hpp"
#include "testing/emulate/attention_case.hpp"

namespace pagoda::emulate {
namespace {

struct GatheredConfig {
  using T = arch::BFloat16;
  static constexpr mha_sm90::TileConfig tile{.depth_qk = AttentionCase::kDepth,
                                             .depth_vo = AttentionCase::kDepth,
                                             .BN = 32,
                                             .num_consumers = 1,
                                             .rows = mha_sm90::RowKind::kPacked,
                                             .load = mha_sm90::LoadKind::kGather,
                                             .raw_tiles = 4,
                                             .is_ping_pong = false,
                                             .ctas_per_sm = 2,
                                             .producer_registers = 104,
                                             .consumer_registers = 152};
};

struct GatheredTraits {
  using Config = GatheredConfig;
  using Kernel = mha_sm90::Kernel<Config>;
  static constexpr int block_rows = mha_sm90::kRows, blocks = 1;
  static constexpr bool fuses_heads = false;
};

}  // namespace

// Intervals of six KV tiles, which split long row tiles and hold three short ones: the gathering
// warps may have finished one before the next is drawn.
Outcome run_decode_gathered(const emulator::Options& options) {
  const AttentionShape shape{.kernel = "sm90/decode_gathered",
                             .sequences = {{2, 150}, {1, 37}, {1, 50}, {1, 64}, {2, 0}, {2, 260}},
                             .num_kv_heads = 2,
                             .group = 4,
                             .ctas = 7,
                             .is_gathered = true};
  return AttentionCase(shape, options.seed).run<GatheredTraits>(options);
}

}  // namespace pagoda::emulate
