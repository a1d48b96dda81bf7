// Launches of small instances of the attention kernel on KVBuffer, with mma.sync.
#include "kernels/common/kv_buffer/async_buffers.hpp"
#include "kernels/common/kv_buffer/decode_mainloop.hpp"
#include "operand/mma_sync.hpp"
#include "testing/emulate/attention.hpp"
#include "testing/emulate/kv_buffer_attention.hpp"

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
struct DecodeConfig {
  using T = arch::BFloat16;
  static constexpr TileConfig tile = [] {
    TileConfig tile = TokenConfig::tile;
    tile.is_decode = true;
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

}  // namespace

Outcome run_sm80_prefill(const emulator::Options& options) {
  const AttentionShape shape = prefill_shape("sm80/prefill", 10);
  return AttentionCase(shape, options.seed).run<KVBufferTraits<PrefillConfig>>(options);
}
// Nine KV tiles in three splits, which the last CTA to finish merges.
Outcome run_sm80_prefill_split(const emulator::Options& options) {
  const AttentionShape shape = split_shape("sm80/prefill_split", 12);
  return AttentionCase(shape, options.seed).run<KVBufferTraits<SplitConfig>>(options);
}
Outcome run_sm80_prefill_registers(const emulator::Options& options) {
  const AttentionShape shape = prefill_shape("sm80/prefill_registers", 10);
  return AttentionCase(shape, options.seed).run<KVBufferTraits<RegistersConfig>>(options);
}
Outcome run_sm80_token(const emulator::Options& options) {
  const AttentionShape shape = token_shape("sm80/token");
  return AttentionCase(shape, options.seed).run<KVBufferTraits<TokenConfig>>(options);
}
// One token of four heads each, of more sequences than a warp has lanes: 109 KV tiles divided among
// 38 CTAs, three each. Sequences have one split, the longest five, 38 in all, and a CTA is left.
Outcome run_sm80_decode(const emulator::Options& options) {
  AttentionShape shape{.kernel = "sm80/decode",
                       .sequences = {{1, 150}, {1, 37}, {1, 0}, {1, 860}},
                       .num_kv_heads = 1,
                       .group = 4,
                       .ctas = 39,
                       .schedule = kernels::Schedule::kStreamK};
  shape.sequences.insert(shape.sequences.begin(), 30, {1, 150});
  return AttentionCase(shape, options.seed).run<KVBufferTraits<DecodeConfig>>(options);
}
Outcome run_sm80_token_registers(const emulator::Options& options) {
  const AttentionShape shape = token_shape("sm80/token_registers");
  return AttentionCase(shape, options.seed).run<KVBufferTraits<TokenRegistersConfig>>(options);
}

}  // namespace pagoda::emulate
