// TileConfig: what an instance of the kernel on KVBuffer is compiled for besides its element type:
// tile sizes, warps, staging, and the class of scores.
#pragma once

#include "core/target.hpp"
#include "kernels/common/kinds.hpp"
#include "kernels/common/row.hpp"
#include "operand/kv_buffer_config.hpp"
#include "operand/tiled_tensor_core.hpp"

namespace pagoda::kernels::kv_buffer {

// How a step of K or V comes into shared memory.
enum class Staging : uint8_t {
  kAsync,      // AsyncKVBuffer: 16-bit caches with rows that are aligned to 16 bytes; NVIDIA
  kVectors,    // KVBufferImpl: the same, with head dims that are multiples of 8; AMD
  kRegisters,  // KVBufferImpl: every cache
  // kAsync in decoding where head dims are less than the padded ones. The columns that rows do not
  // have become zeros, without a byte of memory read.
  kAsyncNarrow,
  // kAsync in decoding over e4m3 caches, under 16-bit queries or e4m3 ones (decode_fp8.hpp).
  kAsyncFp8,
  // kAsync in decoding latent rows, whose first columns are V (latent_mainloop.hpp).
  kAsyncLatent,
};
constexpr bool is_async(Staging staging) {
  return staging == Staging::kAsync || staging == Staging::kAsyncNarrow ||
         staging == Staging::kAsyncFp8 || staging == Staging::kAsyncLatent;
}

// CTAs of decoding that a multiprocessor takes at once: as few as keep memory busy, and as many as
// registers and 228 KB of shared memory hold.
struct DecodeOccupancy {
  int fewest, most;
};
constexpr DecodeOccupancy decode_occupancy(int depth) {
  if (depth == 64) return {4, 4};
  if (depth > 256) return {1, 1};  // latent rows
  return depth == 128 ? DecodeOccupancy{2, 3} : DecodeOccupancy{2, 2};
}

// Decoding: a page begins at such rows, which a warp loads at once.
inline constexpr int kPageRows = 16;

struct TileConfig {
  operand::MmaShape mma{};
  int group_size = 2;
  int depth_qk = 128, depth_vo = 128;  // padded head dims
  int BM = 128;                        // rows of a work tile
  int BN = 64;                         // keys of a KV tile
  // The warps of a CTA: warps_m x warps_n. A warp computes the scores of BM / warps_m rows and BN /
  // warps_n keys, and O of the same rows and depth_vo / warps_n columns. With warps_n > 1 the warps
  // exchange row maxima and P through shared memory (token generation, but not decoding).
  int warps_m = 4, warps_n = 1;
  // A step of K is k_BK elements of all keys, a step of V v_BK keys of all elements.
  int k_BK = 128, v_BK = 64;
  int k_tiles = 1, v_tiles = 1;  // of a step, in shared memory
  // kRegisters: register stages. By cp.async: steps in flight.
  int num_stages = 1;
  Staging staging = Staging::kAsync;
  int q_bytes = 2;  // of an element of Q; kAsyncFp8: 1 for e4m3
  ScoreClass scores = ScoreClass::kPlain;
  // Token generation: every sequence has one token, which sees all its keys (decode_work.hpp), or,
  // with has_tokens, a few, which see all keys but those of the tokens after them; with
  // decodes_general, too, only the last of them, or with a soft cap.
  bool is_decode = false, has_tokens = false, decodes_general = false;
  // Decoding: CTAs of a cluster, which share the keys of a row tile and add up their partial
  // results in shared memory (cluster_merge.hpp). sm_90.
  int cluster = 1;
  // kRegisters, not token generation: V passes through TransposedKVBuffer (AMD).
  bool transposes_v = false;
  bool keeps_q_in_registers = false;
  // Q comes from global memory into registers without shared memory, and O leaves through the
  // memory of K and V, in o_parts parts of its columns (AMD: 64 KB of shared memory for two CTAs).
  bool reads_q_directly = false;
  int o_parts = 1;
  int ctas_per_sm = 2;

  // Required by kernels/common/work_tile.hpp. A KV tile may start at any key: rows are looked up
  // one by one.
  static constexpr LoadKind load = LoadKind::kGather;
  static constexpr bool fuses_heads = false;
  [[nodiscard]] static PAGODA_HOST_DEVICE constexpr bool has_even_tiles() { return false; }
  int block_rows = BM;
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int tile_rows() const { return BM; }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int num_blocks() const { return 1; }

  int warp_size = 32;
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int warps() const { return warps_m * warps_n; }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int threads() const { return warps() * warp_size; }
  // NOLINTBEGIN(readability-identifier-naming): as BM, BN
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int WM() const { return BM / warps_m; }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int WN() const { return BN / warps_n; }
  // NOLINTEND(readability-identifier-naming)
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int depth_of_warp() const {  // columns of O
    return depth_vo / warps_n;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool is_token_generation() const {
    return warps_n > 1;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool has_fp8_cache() const {
    return staging == Staging::kAsyncFp8;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr bool is_latent() const {
    return staging == Staging::kAsyncLatent;
  }
  // The bytes of an element of K or V in shared memory.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int kv_bytes() const {
    return has_fp8_cache() ? 1 : 2;
  }
  // Token generation packs (token, head) pairs; a prefill row is a token of one head.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr RowMap row_map() const {
    if (is_decode && !has_tokens) return RowMap::kHeads;
    return is_token_generation() ? RowMap::kPacked : RowMap::kTokens;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int k_steps() const { return depth_qk / k_BK; }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int v_steps() const { return BN / v_BK; }
};

// The tile of decoding with mma.sync m16n8k16: 16 rows, four warps with 16 keys of a KV tile each
// (decode_mainloop.hpp), over an fp8 cache of head dims 64 and 128 32; steps of 8 or 16 KB, three
// of them in flight: whole tiles of K and V, or of 16-bit head dim 256 halves of 128 columns.
constexpr TileConfig decode_tile(int depth, bool has_tokens = false, bool is_general = false,
                                 int cluster = 1, Staging staging = Staging::kAsync) {
  TileConfig tile;
  tile.staging = staging;
  tile.mma = {16, 8, 16};
  tile.depth_qk = tile.depth_vo = depth;
  tile.BM = tile.block_rows = 16;
  tile.warps_m = 1;
  tile.warps_n = 4;
  const bool has_fp8_cache = staging == Staging::kAsyncFp8;
  tile.BN = has_fp8_cache && depth <= 128 ? 128 : 64;
  const bool has_parts = depth > 128 && !has_fp8_cache;
  tile.k_BK = has_parts ? 128 : depth;
  tile.v_BK = has_parts ? 32 : tile.BN;  // 32: as many bytes as 64 keys of 128 columns
  tile.k_tiles = tile.v_tiles = 2;
  tile.num_stages = 3;
  tile.is_decode = true;
  tile.has_tokens = has_tokens || is_general;
  tile.decodes_general = is_general;
  tile.cluster = cluster;
  tile.ctas_per_sm = decode_occupancy(depth).fewest;
  return tile;
}

// That of decoding latent rows: eight warps with 64 columns each, KV tiles of 72 KB, two in flight.
constexpr TileConfig latent_tile(bool has_tokens = false, int cluster = 1) {
  TileConfig tile = decode_tile(128, has_tokens, false, cluster, Staging::kAsyncLatent);
  tile.depth_qk = tile.k_BK = 576;
  tile.depth_vo = 512;
  tile.warps_n = 8;
  tile.num_stages = 2;
  tile.ctas_per_sm = decode_occupancy(tile.depth_qk).fewest;
  return tile;
}

}  // namespace pagoda::kernels::kv_buffer
