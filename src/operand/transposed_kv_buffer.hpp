// TransposedKVBuffer: a KVBuffer for V whose tiles in shared memory are transposed, so that a lane
// reads 16 bytes of consecutive keys of one column: the operand of V' P' of MFMA. Registers stage
// it as in KVBufferImpl.
//
// A thread has rows r and r + 8 of 16 keys, and stores the pair of each column as one word. The
// keys of a column are therefore in the order 0, 8, 1, 9, ..., 7, 15 (MmaInstruction::to_a has P in
// it).
#pragma once

#include <cstdint>

#include "arch/fault.hpp"
#include "arch/layout/types.hpp"
#include "arch/math.hpp"
#include "arch/memory.hpp"
#include "arch/thread.hpp"
#include "core/target.hpp"
#include "operand/kv_buffer.hpp"

namespace pagoda::operand {

// Blocks of 8 keys, one after the other: in each a vector, the 8 keys, for every column. Vectors of
// neighbouring chunks of 8 columns differ by an XOR, so that the stores of 8 threads, each to its
// chunk, fall into different banks. (A vector of padding after each chunk does that, too, but reads
// of 16 bytes by lanes 0 .. 3 and 20 .. 23 together, as gfx942 makes them, would share banks.)
struct TransposedLayout {
  int keys = 0, columns = 0;

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int size() const {  // vectors
    return keys / 8 * columns;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int index(int block, int column) const {
    return block * columns + (column ^ (column / 8 % 8));
  }
};
// Where key `key` of 16 is in the order 0, 8, 1, 9, ...
constexpr int interleaved_key(int key) { return key % 8 * 2 + key / 8; }

// BN, WN, BK, depth, num_stages, num_tiles: of V, as in KVBufferImpl.
template <KVBufferConfig config, class TensorCore, int BN, int WN, int BK, int depth,
          int num_threads, int num_stages = 1, int num_tiles = 1,
          Elements elements = Elements::kAny>
class TransposedKVBuffer
    : public KVBufferSizes<config, TensorCore, TransposedLayout{BK, depth}, BN, WN, BK, num_tiles>,
      public RegisterStages<typename TensorCore::In, BN, num_stages,
                            kStageVectors<config, TensorCore, BK>, elements> {
  using Base =
      KVBufferSizes<config, TensorCore, TransposedLayout{BK, depth}, BN, WN, BK, num_tiles>;

 public:
  using Base::num_k_tiles;
  using Base::num_mmas;
  using Base::simd_width;
  using Base::smem_layout;
  using typename Base::T;
  static_assert(config.iterator_axis == 0 && BK % 16 == 0 && depth % 64 == 0);
  static_assert(TensorCore::k_group == 16 && TensorCore::Instruction::kRowLanes == 2,
                "a lane's keys are those of a block: 32x32x8 with two k-steps");

  // A thread's part of a block tile: pairs of vectors, rows r and r + 8.
  static constexpr int chunks = depth / simd_width;
  static constexpr int pairs = BK / 2 * chunks;
  static constexpr int pair_steps = (pairs + num_threads - 1) / num_threads;
  static constexpr int stage_vectors = num_mmas * num_k_tiles;
  static_assert(2 * pair_steps <= stage_vectors, "a stage holds a thread's part of a block tile");

  PAGODA_DEVICE TransposedKVBuffer(arch::SharedPtr<T> shared, int warp_n) : Base(shared, warp_n) {}

  // Loads the next block tile into register stage load_tile_id.
  PAGODA_DEVICE void load_from_dram() {
    this->load_next_stage([&](int stage, auto rows) {
      PAGODA_UNROLL
      for (int i = 0; i < pair_steps; ++i) {
        PAGODA_UNROLL
        for (int of_pair = 0; of_pair < 2; ++of_pair) {
          const auto row =
              this->row(rows, this->global_step * BK + row_of(i) + 8 * of_pair, is_loading(i));
          this->load_tile[stage * stage_vectors + 2 * i + of_pair] =
              this->load(rows, row, chunk_of(i) * simd_width);
        }
      }
    });
  }

  // Stores register stage `tile_id`, transposed, to the tile of smem_iter.
  template <int tile_id = 0>
  PAGODA_DEVICE void copy_to_shared() const {
    static_assert(tile_id < num_stages);
    int stage = tile_id;
    if constexpr (tile_id > 0)
      stage = arch::mutable_value("register stage 0 for another", stage, 0);
    PAGODA_UNROLL
    for (int i = 0; i < pair_steps; ++i) {
      if (!is_loading(i)) continue;
      const arch::Words<4> low = this->widened(this->load_tile[stage * stage_vectors + 2 * i]);
      const arch::Words<4> high = this->widened(this->load_tile[stage * stage_vectors + 2 * i + 1]);
      const int key = row_of(i) % 16;  // 0 .. 7
      const int block = row_of(i) / 16 * 2 + key / 4;
      PAGODA_UNROLL
      for (int e = 0; e < simd_width; ++e) {
        const uint32_t selector = e % 2 == 0 ? 0x5410 : 0x7632;
        const int vector = smem_layout.index(block, chunk_of(i) * simd_width + e);
        arch::store((this->smem_iter.tile() + (vector * simd_width + interleaved_key(key) % 8))
                        .template as<uint32_t>(),
                    arch::byte_permute(low.word[e / 2], high.word[e / 2], selector));
      }
    }
  }

  // Fills mma_tile, or `count` entries of it, for k-group `k_mma` of the tile of smem_iter.
  template <int k_mma, int first = 0, int count = num_mmas>
  PAGODA_DEVICE void load_from_shared() {
    static_assert(k_mma < num_k_tiles && first + count <= num_mmas);
    using I = typename TensorCore::Instruction;
    const int lane = arch::lane_idx();
    const int column = this->warp_n() * config.wtile_dim1 + lane % I::kRowStride;
    const int block = 2 * k_mma + lane / I::kRowStride;
    PAGODA_UNROLL
    for (int n = first; n < first + count; ++n) {
      const int vector = smem_layout.index(block, column + n * Base::MMA_N);
      this->mma_tile[n] =
          arch::load((this->smem_iter.tile() + vector * simd_width).template as<arch::Words<4>>());
    }
  }

 private:
  // Of the thread's pair `i`: the first of its rows, and its chunk. 64 threads have 8 neighbouring
  // chunks, 128 bytes of a row, of the 8 pairs of 16 rows: the stores of 32 lanes cover all banks.
  static PAGODA_DEVICE int pair_of(int i) { return arch::thread_idx() + i * num_threads; }
  static PAGODA_DEVICE int row_of(int i) {
    return pair_of(i) / (8 * chunks) * 16 + pair_of(i) / 8 % 8;
  }
  static PAGODA_DEVICE int chunk_of(int i) {
    return pair_of(i) / 64 % (chunks / 8) * 8 + pair_of(i) % 8;
  }
  static PAGODA_DEVICE bool is_loading(int i) {
    return pairs % num_threads == 0 || pair_of(i) < pairs;
  }
};

}  // namespace pagoda::operand
