// KVBuffer: how K and V come from global memory into matrix fragments on GPUs without TMA, one
// block tile after the other. KVBufferImpl stages a tile in registers:
//
//   load_from_dram()        global memory -> registers (load_tile); a wait where they are used
//   copy_to_shared<stage>() registers -> shared memory; the caller's barrier makes it visible
//   load_from_shared<k>()   shared memory -> fragments of one warp (mma_tile), for k-group k
//
// The register stage makes every layout in memory equal: pages of any size, rows at any address,
// e4m3 elements (widened on the way to shared memory). Rows and elements that do not exist are
// zeros. The same interface have AsyncKVBuffer (async_kv_buffer.hpp), with cp.async, and
// TransposedKVBuffer (transposed_kv_buffer.hpp), which transposes V on the way to shared memory.
#pragma once

#include <concepts>
#include <cstdint>

#include "arch/fault.hpp"
#include "arch/layout/types.hpp"
#include "arch/math.hpp"
#include "arch/memory.hpp"
#include "arch/thread.hpp"
#include "core/target.hpp"
#include "operand/kv_buffer_config.hpp"
#include "operand/kv_tile.hpp"
#include "operand/tiled_tensor_core.hpp"
#include "operand/vector_layout.hpp"
#include "operand/vector_load.hpp"

namespace pagoda::operand {

template <class Buffer>
concept KVBuffer = requires(Buffer& buffer, const Buffer& constant, KVTile<Buffer::BN> tile) {
  buffer.begin(tile, int32_t{}, int32_t{});
  buffer.load_from_dram();
  buffer.template copy_to_shared<0>();
  buffer.template load_from_shared<0>();
  constant.get_mma_tile();
};

// The tiles of a KVBuffer in shared memory, used in turn.
template <class T, auto layout_, int count_>
class SharedTileIterator {
 public:
  static constexpr auto layout = layout_;
  static constexpr int count = count_;
  static constexpr int elements = layout.size() * 8;  // of a tile

  SharedTileIterator() = default;
  explicit PAGODA_DEVICE SharedTileIterator(arch::SharedPtr<T> first) : first_(first) {}

  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<T> tile() const {
    if constexpr (count == 1) return first_;
    const auto index = static_cast<uint32_t>(index_);
    return first_ +
           static_cast<int32_t>(arch::mutable_stage("tiles of a KVBuffer share memory", index)) *
               elements;
  }
  PAGODA_DEVICE void advance() {
    if constexpr (count > 1) index_ = index_ + 1 == count ? 0 : index_ + 1;
  }
  [[nodiscard]] PAGODA_DEVICE int32_t index() const { return index_; }
  PAGODA_DEVICE void set_index(int32_t index) { index_ = index; }

 private:
  arch::SharedPtr<T> first_;
  int32_t index_ = 0;
};

// The part that all buffers share: sizes, shared memory of `num_tiles` tiles, fragments.
template <KVBufferConfig config_, class TensorCore_, auto smem_layout_, int BN_, int WN_, int BK_,
          int num_tiles_>
class KVBufferSizes {
 public:
  static constexpr KVBufferConfig config = config_;
  using TensorCore = TensorCore_;
  using T = typename TensorCore::In;  // of shared memory and fragments
  static constexpr auto smem_layout = smem_layout_;
  static constexpr int simd_width = TensorCore::simd_width;

  // NOLINTBEGIN(readability-identifier-naming): names of the page
  static constexpr int BN = BN_, WN = WN_, BK = BK_;
  static constexpr int MMA_N = TensorCore::shape.N;
  static constexpr int MMA_K = TensorCore::shape.K;
  // NOLINTEND(readability-identifier-naming)
  static constexpr int num_mmas = (config.wsize + MMA_N - 1) / MMA_N;
  static constexpr int num_k_tiles =
      (BK + MMA_K * TensorCore::group_size - 1) / (MMA_K * TensorCore::group_size);
  static constexpr int num_warps_n = BN / WN;
  static constexpr int wtile_dim0 = config.wtile_dim0, wtile_dim1 = config.wtile_dim1;
  static_assert(config.wsize % MMA_N == 0 && BK % (MMA_K * TensorCore::group_size) == 0,
                "warp tiles are whole fragments");

  // num_mmas x simd_width elements: the fragments of one k-group.
  using MMATile = arch::Words<4>[num_mmas];
  using SharedIterator = SharedTileIterator<T, smem_layout, num_tiles_>;

  [[nodiscard]] PAGODA_DEVICE const MMATile& get_mma_tile() const { return mma_tile; }

  MMATile mma_tile;
  SharedIterator smem_iter;  // the tile that is multiplied

 protected:
  PAGODA_DEVICE KVBufferSizes(arch::SharedPtr<T> shared, int warp_n)
      : smem_iter(shared), warp_n_(warp_n) {}
  // Which of the num_warps_n warp tiles is this warp's.
  [[nodiscard]] PAGODA_DEVICE int warp_n() const { return warp_n_; }

 private:
  int warp_n_;
};

// The part that buffers with fragments as TiledTensorCore loads them share.
template <KVBufferConfig config, class TensorCore, VectorLayout smem_layout, int BN, int WN, int BK,
          int num_tiles>
class KVBufferBase : public KVBufferSizes<config, TensorCore, smem_layout, BN, WN, BK, num_tiles> {
  using Sizes = KVBufferSizes<config, TensorCore, smem_layout, BN, WN, BK, num_tiles>;

 public:
  using Sizes::num_k_tiles;
  using Sizes::num_mmas;
  using Sizes::num_warps_n;
  using Sizes::simd_width;
  using Sizes::wtile_dim0;
  using Sizes::wtile_dim1;
  static_assert(smem_layout.repeats_every_8_rows());
  // further_chunk() adds chunks by XOR: the row above them, or the warp tile, has other bits.
  static constexpr int wtile_chunks = wtile_dim1 / simd_width;
  static_assert(smem_layout.is_blocked || (smem_layout.chunks & (smem_layout.chunks - 1)) == 0);
  static_assert(config.iterator_axis == 1 || num_warps_n == 1 ||
                (wtile_chunks & (wtile_chunks - 1)) == 0);

  // Fills mma_tile, or `count` entries of it, for k-group `k_mma` of the tile of smem_iter.
  template <int k_mma, int first = 0, int count = num_mmas>
  PAGODA_DEVICE void load_from_shared() {
    static_assert(k_mma < num_k_tiles && first + count <= num_mmas);
    const int row = config.iterator_axis == 1 ? this->warp_n() * wtile_dim0 : 0;
    const int chunk = config.iterator_axis == 1 ? 0 : this->warp_n() * wtile_dim1 / simd_width;
    TensorCore::template load_b<smem_layout, k_mma, first, count>(
        this->mma_tile, this->smem_iter.tile(), row, chunk);
  }

 protected:
  using Sizes::Sizes;
};

// `bounds`, or in a mutant one row less.
PAGODA_DEVICE int32_t existing_rows(int32_t bounds, arch::Where where = arch::Where::current()) {
  return arch::mutable_value("last row of a KV tile dropped", bounds, bounds - 1, where);
}

// What a buffer that stages in registers loads.
enum class Elements : uint8_t {
  kAny,      // 16-bit elements or e4m3, rows at any address, any head dim
  kVectors,  // 16-bit elements, rows at multiples of 16 bytes, head dims that are multiples of 8
};

// Rows of a tile that are looked up and loaded one by one.
struct SingleRows {};

// Loads vectors of the rows of a KV tile, of which `bounds` rows exist, and makes them T. kAny;
// kVectors: buffer_row_loader.hpp (AMD). choose(load) calls load(SingleRows or another way), the
// same for all rows of the tile; row() and load() take it.
template <class T, int BN, Elements elements>
class RowLoader {
 public:
  static_assert(elements == Elements::kAny);
  struct Row {
    arch::GlobalPtr<const char> from = nullptr;
    bool exists = false;
  };

  PAGODA_DEVICE void begin(const KVTile<BN>& /*tile*/, int32_t /*bounds*/) {}
  template <class Load>
  static PAGODA_DEVICE void choose(const Load& load) {
    load(SingleRows{});
  }
  // Row `row`, or no row.
  [[nodiscard]] static PAGODA_DEVICE Row row(SingleRows /*rows*/, const KVTile<BN>& tile,
                                             int32_t bounds, int32_t row, bool is_wanted) {
    Row result;
    result.exists = is_wanted && row < existing_rows(bounds);
    if (result.exists) result.from = tile.row(row);
    return result;
  }
  // Eight elements from `column` on; zeros past the head dim, or of no row.
  [[nodiscard]] static PAGODA_DEVICE arch::Words<4> load(SingleRows /*rows*/,
                                                         const KVTile<BN>& tile, const Row& row,
                                                         int32_t column) {
    const KVSource& source = tile.source;
    const int32_t left = row.exists ? source.dim - column : 0;
    if (left <= 0) return {{0, 0, 0, 0}};
    return source.element_bytes == 1
               ? load_vector<1>(row.from + column, left, source.is_aligned)
               : load_vector<2>(row.from + 2 * column, left, source.is_aligned);
  }
  [[nodiscard]] static PAGODA_DEVICE arch::Words<4> widened(const KVTile<BN>& tile,
                                                            const arch::Words<4>& from) {
    if (tile.source.element_bytes != 1) return from;
    arch::Words<4> wide[2];
    if constexpr (std::same_as<T, arch::Half>) {
      arch::widen_e4m3_f16(from, wide);
    } else {
      arch::widen_e4m3_bf16(from, wide);
    }
    return wide[0];
  }
};

// The register stages of a buffer, `vectors` vectors each, and what they are loaded from.
template <class T, int BN, int num_stages, int vectors, Elements elements>
class RegisterStages {
 public:
  using LoadTile = arch::Words<4>[num_stages * vectors];

  // The next loads are of `tile`, of which num_b_rows rows exist, from block tile `step` on.
  // Register stages and shared memory stay as they are.
  PAGODA_DEVICE void begin(const KVTile<BN>& tile, int32_t num_b_rows, int32_t step = 0) {
    global_tile = tile;
    bounds = num_b_rows;
    global_step = step;
    loader_.begin(global_tile, bounds);
  }

  LoadTile load_tile;
  KVTile<BN> global_tile;    // with global_step: the page's global_iterator
  int32_t global_step = 0;   // block tiles of global_tile that are loaded
  int32_t bounds = 0;        // rows of global_tile that exist
  int32_t load_tile_id = 0;  // the register stage of the next load

 protected:
  // Calls load(stage, rows) with the constant load_tile_id: registers have no run-time index.
  template <class Load>
  PAGODA_DEVICE void load_next_stage(const Load& load) {
    PAGODA_UNROLL
    for (int stage = 0; stage < num_stages; ++stage) {
      if (stage == load_tile_id) loader_.choose([&](auto rows) { load(stage, rows); });
    }
    load_tile_id = load_tile_id + 1 == num_stages ? 0 : load_tile_id + 1;
    ++global_step;
  }
  // Row `row` of the tile, where it is wanted and exists.
  template <class Rows>
  [[nodiscard]] PAGODA_DEVICE auto row(Rows rows, int32_t row, bool is_wanted) const {
    return loader_.row(rows, global_tile, bounds, row, is_wanted);
  }
  template <class Rows, class Row>
  [[nodiscard]] PAGODA_DEVICE arch::Words<4> load(Rows rows, const Row& row, int32_t column) const {
    return loader_.load(rows, global_tile, row, column);
  }
  // A loaded vector as elements T.
  [[nodiscard]] PAGODA_DEVICE arch::Words<4> widened(const arch::Words<4>& from) const {
    return loader_.widened(global_tile, from);
  }

 private:
  RowLoader<T, BN, elements> loader_;
};

// The documented shared-memory layouts. Prefill: a blocked product. Token generation: row-major.
constexpr VectorLayout kv_smem_layout(KVBufferConfig config, VectorSwizzle swizzle,
                                      bool token_gen) {
  return {.rows = config.btile_dim0,
          .chunks = config.btile_dim1 / 8,
          .is_blocked = !token_gen,
          .swizzle = swizzle};
}
// Threads that load a block tile, as rows x vectors of a row.
struct ThreadLayout {
  int rows = 0, chunks = 0;
};
constexpr ThreadLayout kv_thread_layout(KVBufferConfig config, int num_threads, bool token_gen) {
  if (!token_gen) return {num_threads / 4, 4};
  const int chunks = config.btile_dim1 / 8;
  const int vectors = config.btile_dim0 * chunks;
  const int threads = num_threads < vectors ? num_threads : vectors;
  return {threads / chunks, chunks};
}

// Vectors of a register stage: num_mmas x num_k_tiles.
template <KVBufferConfig config, class TensorCore, int BK>
inline constexpr int kStageVectors =
    (config.wsize + TensorCore::shape.N - 1) / TensorCore::shape.N*((BK + TensorCore::k_group - 1) /
                                                                    TensorCore::k_group);

// BN, WN: keys of a KV tile, and of a warp. BK: elements (K) or keys (V) of a step. `depth`: padded
// head dim. num_stages: register stages. num_tiles: tiles in shared memory.
template <KVBufferConfig config, class TensorCore, VectorSwizzle swizzle, int BN, int WN, int BK,
          int depth, int num_threads, int num_stages = 1, bool token_gen = false, int num_tiles = 1,
          Elements elements = Elements::kAny>
class KVBufferImpl
    : public KVBufferBase<config, TensorCore, kv_smem_layout(config, swizzle, token_gen), BN, WN,
                          BK, num_tiles>,
      public RegisterStages<typename TensorCore::In, BN, num_stages,
                            kStageVectors<config, TensorCore, BK>, elements> {
  using Base = KVBufferBase<config, TensorCore, kv_smem_layout(config, swizzle, token_gen), BN, WN,
                            BK, num_tiles>;

 public:
  using Base::num_k_tiles;
  using Base::num_mmas;
  using Base::simd_width;
  using Base::smem_layout;
  using typename Base::T;
  static constexpr int num_repeats = config.btile_dim1 / simd_width;  // blocks of the layout
  static constexpr ThreadLayout thread_layout = kv_thread_layout(config, num_threads, token_gen);

  // Of a register stage, as they are in global memory. A thread uses the first `vectors` of a
  // stage: as many as its part of a block tile has.
  static constexpr int stage_vectors = num_mmas * num_k_tiles;
  static constexpr int row_steps =
      (config.btile_dim0 + thread_layout.rows - 1) / thread_layout.rows;
  static constexpr int chunk_steps = num_repeats / thread_layout.chunks;
  static constexpr int vectors = row_steps * chunk_steps;
  static_assert(num_repeats % thread_layout.chunks == 0);
  static_assert(vectors <= stage_vectors, "a stage holds a thread's part of a block tile");

  // `shared`: num_tiles tiles of smem_layout. warp_n: this warp's of the num_warps_n warp tiles.
  PAGODA_DEVICE KVBufferImpl(arch::SharedPtr<T> shared, int warp_n) : Base(shared, warp_n) {}

  // Loads the next block tile into register stage load_tile_id.
  PAGODA_DEVICE void load_from_dram() {
    const int first_row = config.iterator_axis == 0 ? this->global_step * config.btile_dim0 : 0;
    const int first_column = config.iterator_axis == 1 ? this->global_step * config.btile_dim1 : 0;
    this->load_next_stage([&](int stage, auto rows) {
      PAGODA_UNROLL
      for (int i = 0; i < row_steps; ++i) {
        const auto row =
            this->row(rows, first_row + thread_row() + i * thread_layout.rows, is_loading(i));
        PAGODA_UNROLL
        for (int j = 0; j < chunk_steps; ++j) {
          const int32_t column =
              first_column + (thread_chunk() + j * thread_layout.chunks) * simd_width;
          this->load_tile[stage * stage_vectors + i * chunk_steps + j] =
              this->load(rows, row, column);
        }
      }
    });
  }

  // Stores register stage `tile_id` to the tile of smem_iter.
  template <int tile_id = 0>
  PAGODA_DEVICE void copy_to_shared() const {
    static_assert(tile_id < num_stages);
    int stage = tile_id;
    if constexpr (tile_id > 0)
      stage = arch::mutable_value("register stage 0 for another", stage, 0);
    PAGODA_UNROLL
    for (int i = 0; i < row_steps; ++i) {
      if (!is_loading(i)) continue;
      PAGODA_UNROLL
      for (int j = 0; j < chunk_steps; ++j) {
        const int at = vector_index<smem_layout>(thread_row() + i * thread_layout.rows,
                                                 thread_chunk() + j * thread_layout.chunks);
        arch::store((this->smem_iter.tile() + at * simd_width).template as<arch::Words<4>>(),
                    this->widened(this->load_tile[stage * stage_vectors + i * chunk_steps + j]));
      }
    }
  }

 private:
  static PAGODA_DEVICE int thread_row() { return arch::thread_idx() / thread_layout.chunks; }
  static PAGODA_DEVICE int thread_chunk() { return arch::thread_idx() % thread_layout.chunks; }
  // Whether this thread has a row in step i.
  static PAGODA_DEVICE bool is_loading(int i) {
    constexpr bool has_spare_threads = thread_layout.rows * thread_layout.chunks < num_threads;
    if (has_spare_threads && thread_row() >= thread_layout.rows) return false;
    return thread_row() + i * thread_layout.rows < config.btile_dim0;
  }
};

}  // namespace pagoda::operand
