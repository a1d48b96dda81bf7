// Storage: the shared memory of an instance, and the types that follow from its Config.
#pragma once

#include <cstdint>
#include <type_traits>

#include "arch/memory.hpp"
#include "kernels/common/kv_buffer/config.hpp"
#include "kernels/common/shared_value.hpp"
#include "kernels/common/stream_k_start.hpp"
#include "operand/kv_buffer.hpp"

namespace pagoda::kernels::kv_buffer {

// Sizes and matrix instruction of an instance.
template <class Config>
struct OperandSizes {
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  // The type of the operands of products. Over an fp8 cache all become f16.
  using Product = std::conditional_t<tile.has_fp8_cache(), arch::Half, T>;
  using KCore = operand::TiledTensorCore<float, Product, tile.mma, tile.group_size, true>;
  // A warp's keys of a step must be whole k-groups.
  static constexpr int v_group =
      tile.v_BK % (tile.mma.K * tile.group_size) == 0 ? tile.group_size : tile.v_BK / tile.mma.K;
  using VCore = operand::TiledTensorCore<float, Product, tile.mma, v_group, false>;
  using Instruction = typename KCore::Instruction;
  static_assert(tile.warp_size == Instruction::kLanes);
  static constexpr int threads = tile.threads();

  static constexpr operand::KVBufferConfig k_config =
      operand::KVBufferConfig::k(tile.BN, tile.WN(), tile.k_BK);
  static constexpr operand::KVBufferConfig v_config =
      operand::KVBufferConfig::v(tile.BN, tile.WN(), tile.v_BK, tile.depth_vo);
  static constexpr bool token_gen = tile.is_token_generation();
  static constexpr bool is_async = kv_buffer::is_async(tile.staging);
};

// Buffers<OperandSizes<Config>, staging>: K and V, the KVBuffer of each. kRegisters:
// register_buffers.hpp; cp.async: async_buffers.hpp, which a family includes that has it.
template <class Sizes, Staging staging>
struct Buffers;

template <class Config>
struct Operands : OperandSizes<Config> {
  using Sizes = OperandSizes<Config>;
  using Sizes::tile;
  using typename Sizes::Instruction;
  using typename Sizes::Product;
  using KVBuffers = Buffers<Sizes, tile.staging>;
  using K = typename KVBuffers::K;
  using V = typename KVBuffers::V;
  static_assert(operand::KVBuffer<K> && operand::KVBuffer<V>);

  // Fragments of a warp: rows, keys, columns of O.
  static constexpr int m_tiles = tile.WM() / tile.mma.M;
  static constexpr int n_tiles = tile.WN() / tile.mma.N;
  static constexpr int o_tiles = tile.depth_of_warp() / tile.mma.N;
  static constexpr int rows = m_tiles * Instruction::kRows;                    // of a lane
  static constexpr int elements = Instruction::kRows * Instruction::kColumns;  // of a fragment
  using Output = float[m_tiles][o_tiles][elements];

  // Q, P and O: [BM][columns].
  static constexpr operand::VectorLayout row_layout(int columns) {
    return operand::panel_layout(tile.BM, columns / 8);
  }
  static constexpr operand::VectorLayout q_layout = row_layout(tile.depth_qk);
  static constexpr bool shares_p = Sizes::token_gen && (!tile.is_decode || tile.is_latent());
  static constexpr operand::VectorLayout p_layout = row_layout(shares_p ? tile.BN : 64);
  static constexpr operand::VectorLayout o_layout = row_layout(tile.depth_vo / tile.o_parts);
};

// The KV tiles of a work tile that AsyncKVBuffer::load_whole loads: the first `count`. Tile i is in
// page pages[(first_slot + i) >> page_shift], or follows tile i - 1 in memory where page_shift < 0.
// Or those that load_pages loads: the first `paged_count`, of several pages of 1 << page_shift keys
// each; pages[0] has the first key.
struct WholeTiles {
  int64_t k_offset = 0, v_offset = 0;  // bytes from k_data, v_data to tile 0, or the head's row 0
  int64_t pages = 0;                   // of keys.paged.pages
  int32_t k_row_bytes = 0, v_row_bytes = 0;
  int32_t first_slot = 0, page_shift = -1;
  int32_t count = 0, paged_count = 0;
  bool has_several_pages = false;
  int32_t last_rows = 0;  // of the tile that follows these and has fewer rows; 0: none does
};

// What the CTAs of a cluster send each other: cluster_merge.hpp, which a family includes that has
// kernels with clusters.
template <class Config>
struct ClusterInbox;
struct NoInbox {};

template <class Config>
struct Storage {
  using Ops = Operands<Config>;
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;

  static constexpr int kKVectors = tile.k_tiles * Ops::K::smem_layout.size();
  static constexpr int kVVectors = tile.is_latent() ? 0 : tile.v_tiles * Ops::V::smem_layout.size();
  static constexpr int larger(int a, int b) { return a > b ? a : b; }
  // Latent rows: partial scores in fp32, [part][BM][kScoreStride].
  static constexpr int kScoreStride = tile.BN + 8;
  static constexpr int kScores =
      tile.is_latent() ? tile.warps_n / 2 * tile.BM * kScoreStride * 4 / 2 : 0;  // in T
  // Q [BM, depth_qk], or O on its way to global memory: [BM, depth_vo / o_parts], or scores.
  arch::SharedArray<T,
                    tile.reads_q_directly
                        ? 8
                        : larger(larger(Ops::q_layout.size(), Ops::o_layout.size()) * 8, kScores),
                    128>
      q;
  arch::SharedArray<
      T, larger(kKVectors + kVVectors, tile.reads_q_directly ? Ops::o_layout.size() : 0) * 8, 128>
      kv;
  PAGODA_DEVICE arch::SharedPtr<T> k() { return kv.data(); }
  PAGODA_DEVICE arch::SharedPtr<T> v() { return kv.data() + kKVectors * 8; }
  PAGODA_DEVICE arch::SharedPtr<T> o() { return tile.reads_q_directly ? kv.data() : q.data(); }
  // Token generation: P, but not in decoding, and a value of each row and warp; decoding: four.
  arch::SharedArray<T, Ops::shares_p ? Ops::p_layout.size() * 8 : 8, 128> p;
  arch::SharedArray<float, Ops::token_gen ? tile.warps_n * tile.BM*(tile.is_decode ? 4 : 1) : 1, 16>
      stats;
  arch::SharedArray<uint32_t, 1> is_last;  // split_rows.hpp
  // The work tile of the CTA. Loaded where it is needed: registers are few in the mainloop.
  SharedValue<Work> work;
  SharedValue<WholeTiles> whole_tiles;  // kAsync
  StreamKStorage stream_k;
  std::conditional_t<(tile.cluster > 1), ClusterInbox<Config>, NoInbox> inbox;
};

}  // namespace pagoda::kernels::kv_buffer
