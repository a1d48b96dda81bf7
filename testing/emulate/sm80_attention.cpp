// Launches of small instances of the attention kernel on KVBuffer.
#include "kernels/common/kv_buffer/kernel.hpp"
#include "testing/emulate/attention.hpp"
#include "testing/emulate/attention_case.hpp"

namespace pagoda::emulate {
namespace {

using kernels::ScoreClass;
using kernels::kv_buffer::Staging;
using kernels::kv_buffer::TileConfig;

// Two warps of 16 rows; tiles of 32 keys.
constexpr TileConfig prefill_tile() {
  TileConfig tile;
  tile.mma = {16, 8, 16};
  tile.depth_qk = tile.depth_vo = AttentionCase::kDepth;
  tile.BM = tile.block_rows = 32;
  tile.warps_m = 2;
  tile.BN = 32;
  tile.k_BK = AttentionCase::kDepth;
  tile.v_BK = 32;
  return tile;
}
// Whole tiles of K and V, two loads in flight.
struct PrefillConfig {
  using T = arch::BFloat16;
  static constexpr TileConfig tile = [] {
    TileConfig tile = prefill_tile();
    tile.k_tiles = tile.v_tiles = tile.num_stages = 2;
    tile.keeps_q_in_registers = true;
    return tile;
  }();
};
// One tile of each; single k-steps.
struct SplitConfig {
  using T = arch::BFloat16;
  static constexpr TileConfig tile = [] {
    TileConfig tile = prefill_tile();
    tile.group_size = 1;
    return tile;
  }();
};
// Two steps of K and of V a tile, through registers; general scores.
struct RegistersConfig {
  using T = arch::BFloat16;
  static constexpr TileConfig tile = [] {
    TileConfig tile = prefill_tile();
    tile.staging = Staging::kRegisters;
    tile.scores = ScoreClass::kGeneral;
    tile.k_BK = 32;
    tile.v_BK = 16;
    tile.k_tiles = tile.v_tiles = 2;
    return tile;
  }();
};

// Token generation: 16 rows, four warps that share 64 keys.
constexpr TileConfig token_tile() {
  TileConfig tile = prefill_tile();
  tile.BM = tile.block_rows = 16;
  tile.warps_m = 1;
  tile.warps_n = 4;
  tile.BN = tile.v_BK = 64;
  return tile;
}
struct TokenConfig {
  using T = arch::BFloat16;
  static constexpr TileConfig tile = [] {
    TileConfig tile = token_tile();
    tile.k_tiles = tile.v_tiles = 2;
    tile.num_stages = 3;
    return tile;
  }();
};
struct TokenRegistersConfig {
  using T = arch::BFloat16;
  static constexpr TileConfig tile = [] {
    TileConfig tile = token_tile();
    tile.staging = Staging::kRegisters;
    tile.scores = ScoreClass::kGeneral;
    tile.k_BK = tile.v_BK = 32;
    tile.k_tiles = tile.v_tiles = tile.num_stages = 2;
    return tile;
  }();
};

template <class Config_>
struct Traits {
  using Config = Config_;
  using Kernel = kernels::kv_buffer::Kernel<Config, 80>;
  static constexpr int block_rows = Config::tile.BM, blocks = 1;
  static constexpr bool fuses_heads = false;
};

// Row tiles of two heads: sequences end inside tiles and pages, one has no keys.
AttentionShape prefill_shape(const char* kernel) {
  return {.kernel = kernel,
          .sequences = {{40, 45}, {9, 0}, {33, 130}},
          .num_kv_heads = 1,
          .group = 2,
          .ctas = 10,
          .schedule = kernels::Schedule::kTransient};
}
// Up to three tokens of four heads; eleven KV tiles a KV head on six CTAs.
AttentionShape token_shape(const char* kernel) {
  return {.kernel = kernel,
          .sequences = {{2, 150}, {1, 37}, {2, 0}, {3, 290}},
          .num_kv_heads = 2,
          .group = 4,
          .ctas = 6,
          .schedule = kernels::Schedule::kStreamK};
}

}  // namespace

Outcome run_sm80_prefill(const emulator::Options& options) {
  const AttentionShape shape = prefill_shape("sm80/prefill");
  return AttentionCase(shape, options.seed).run<Traits<PrefillConfig>>(options);
}
// Nine KV tiles in three splits, which the last CTA to finish merges.
Outcome run_sm80_prefill_split(const emulator::Options& options) {
  const AttentionShape shape{.kernel = "sm80/prefill_split",
                             .sequences = {{35, 280}, {20, 20}, {5, 0}},
                             .num_kv_heads = 1,
                             .group = 1,
                             .ctas = 12,
                             .num_splits = 3,
                             .schedule = kernels::Schedule::kTransient};
  return AttentionCase(shape, options.seed).run<Traits<SplitConfig>>(options);
}
Outcome run_sm80_prefill_registers(const emulator::Options& options) {
  const AttentionShape shape = prefill_shape("sm80/prefill_registers");
  return AttentionCase(shape, options.seed).run<Traits<RegistersConfig>>(options);
}
Outcome run_sm80_token(const emulator::Options& options) {
  const AttentionShape shape = token_shape("sm80/token");
  return AttentionCase(shape, options.seed).run<Traits<TokenConfig>>(options);
}
Outcome run_sm80_token_registers(const emulator::Options& options) {
  const AttentionShape shape = token_shape("sm80/token_registers");
  return AttentionCase(shape, options.seed).run<Traits<TokenRegistersConfig>>(options);
}

}  // namespace pagoda::emulate
