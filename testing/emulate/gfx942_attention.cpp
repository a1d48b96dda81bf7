// Launches of small instances of the attention kernel on KVBuffer, with MFMA.
#include "operand/buffer_row_loader.hpp"
#include "operand/mfma.hpp"
#include "testing/emulate/attention.hpp"
#include "testing/emulate/kv_buffer_attention.hpp"

namespace pagoda::emulate {
namespace {

using kernels::ScoreClass;
using kernels::kv_buffer::Staging;
using kernels::kv_buffer::TileConfig;

constexpr TileConfig common_tile() {
  TileConfig tile;
  tile.warp_size = 64;
  tile.depth_qk = tile.depth_vo = AttentionCase::kDepth;
  tile.staging = Staging::kVectors;
  tile.k_tiles = tile.v_tiles = 2;
  return tile;
}
// Two waves of 32 rows; tiles of 32 keys, two steps of K and of V; V transposed. With pages of 64
// keys through buffer resources.
constexpr TileConfig prefill_tile() {
  TileConfig tile = common_tile();
  tile.mma = {32, 32, 8};
  tile.BM = tile.block_rows = 64;
  tile.warps_m = 2;
  tile.BN = 32;
  tile.k_BK = 32;
  tile.v_BK = 16;
  tile.num_stages = 2;
  tile.transposes_v = tile.keeps_q_in_registers = tile.reads_q_directly = true;
  return tile;
}
struct PrefillConfig {
  using T = arch::BFloat16;
  static constexpr TileConfig tile = prefill_tile();
};
struct GeneralConfig {
  using T = arch::BFloat16;
  static constexpr TileConfig tile = [] {
    TileConfig tile = prefill_tile();
    tile.staging = Staging::kRegisters;
    tile.scores = ScoreClass::kGeneral;
    tile.o_parts = 2;
    return tile;
  }();
};
// 16 rows, four waves that share 64 keys.
struct TokenConfig {
  using T = arch::BFloat16;
  static constexpr TileConfig tile = [] {
    TileConfig tile = common_tile();
    tile.mma = {16, 16, 16};
    tile.BM = tile.block_rows = 16;
    tile.warps_m = 1;
    tile.warps_n = 4;
    tile.BN = 64;
    tile.k_BK = tile.v_BK = 32;
    tile.num_stages = 2;
    return tile;
  }();
};

}  // namespace

Outcome run_gfx942_prefill(const emulator::Options& options) {
  AttentionShape shape = prefill_shape("gfx942/prefill", 8);
  shape.page_size = 64;
  return AttentionCase(shape, options.seed).run<KVBufferTraits<PrefillConfig>>(options);
}
Outcome run_gfx942_prefill_split(const emulator::Options& options) {
  const AttentionShape shape = split_shape("gfx942/prefill_split", 9);
  return AttentionCase(shape, options.seed).run<KVBufferTraits<GeneralConfig>>(options);
}
Outcome run_gfx942_token(const emulator::Options& options) {
  const AttentionShape shape = token_shape("gfx942/token");
  return AttentionCase(shape, options.seed).run<KVBufferTraits<TokenConfig>>(options);
}

}  // namespace pagoda::emulate
