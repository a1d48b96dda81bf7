// The load role where TMA can't load K and V: two warps copy them row by row through registers.
// Pages have any size, rows any stride; elements are of Q's type, or e4m3 that is converted to it.
// Each lane looks up the pages of its own rows, shuffles share the addresses, and neighbouring
// lanes load neighbouring vectors of 16 bytes. Out-of-range rows and columns become zeros.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "arch/fence.hpp"
#include "arch/math.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "kernels/mha_sm100/rings.hpp"

namespace pagoda::mha_sm100 {

inline constexpr int kGatherWarps = 2;

// element_bytes: of the KV cache.
template <class Config, int element_bytes>
class Gather {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  using Words = arch::Words<4>;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int warp_rows = tile.BN / kGatherWarps;
  static constexpr int block = warp_rows < 32 ? warp_rows : 32;  // rows; each lane looks up one
  static constexpr int blocks = warp_rows / block;
  static constexpr int elements = 16 / element_bytes;   // of a vector
  static constexpr int across = tile.depth / elements;  // vectors of a row
  static constexpr int steps = block * across / 32;     // of a warp: one vector per lane
  static constexpr int batch = steps % 4 == 0 ? 4 : 2;  // steps whose loads are in flight together
  static_assert(warp_rows % block == 0 && steps % batch == 0);

  // `warp`: 0 or 1. All lanes call.
  PAGODA_DEVICE Gather(const AttentionParams& params, Storage<Config>& storage, int warp)
      : params_(params), storage_(storage), rings_(storage), warp_(warp) {}

  PAGODA_DEVICE void run() {
    WorkReader reader(storage_.work);
    for (; reader.next(); reader.release()) {
      const Work work = reader.work();
      const operand::SequenceRows keys = params_.sequences.keys.sequence(work.sequence);
      for (int32_t i = work.walk.num_tiles; i-- > 0;) {
        const int32_t column = work.walk.column(i);
        load_tile(rings_.k(), params_.k_data, params_.k_rows, params_.dim_qk, keys, work, column);
        load_tile(rings_.v(), params_.v_data, params_.v_rows, params_.dim_vo, keys, work, column);
      }
    }
    rings_.drain();
  }

 private:
  // Loads this warp's half of the rows of a tile.
  template <class Ring>
  PAGODA_DEVICE void load_tile(Ring& ring, arch::GlobalPtr<const void> data,
                               const kernels::RowsView& view, int32_t dim,
                               const operand::SequenceRows& keys, const Work& work,
                               int32_t column) {
    const arch::GlobalPtr<const char> head =
        data.as<const char>() + work.kv_head * view.head_stride * element_bytes;
    const int32_t first = warp_ * warp_rows;
    const int32_t rows_left = work.rows.seqlen_kv - column - first;
    uint64_t rows[blocks];  // addresses; those of out-of-range rows are never read
    PAGODA_UNROLL
    for (int r = 0; r < blocks; ++r) {
      const int32_t row = block * r + arch::lane_idx();
      operand::KeyCoordinates place{};
      if (row < rows_left) place = keys.at(static_cast<uint32_t>(column + first + row));
      const int64_t at = place.outer * view.sequence_stride + place.row * view.row_stride;
      rows[r] = (head + at * element_bytes).address();
    }
    // Waits until the MMAs that read this stage have completed; the MMA warp's commit arrives.
    ring.acquire();
    const auto to = ring.get_smem();
    PAGODA_UNROLL
    for (int r = 0; r < blocks; ++r) {
      PAGODA_NO_UNROLL
      for (int n = 0; n < steps; n += batch) {
        Words words[batch];
        PAGODA_UNROLL
        for (int i = 0; i < batch; ++i) {
          const Vector vector(n + i);
          const uint64_t row = shuffle(rows[r], vector.row);
          words[i] = load(row, vector.column, dim, block * r + vector.row < rows_left);
        }
        PAGODA_UNROLL
        for (int i = 0; i < batch; ++i) {
          const Vector vector(n + i);
          store(to, first + block * r + vector.row, vector.column, words[i]);
        }
      }
    }
    // Orders this lane's stores before the MMAs' reads through the async proxy; syncwarp then
    // orders all lanes' stores before the arrival of one lane.
    arch::fence_proxy_async_shared();
    arch::syncwarp();
    arrive_full(ring);
    ring.commit_step();
  }
  // Arrives on the full barrier of every part of a K tile: gathered parts become full together.
  template <class Ring, int part = 0>
  PAGODA_DEVICE void arrive_full(Ring& ring) {
    ring.pipeline.template producer_mbar<part>().arrive_if(arch::elect_one());
    if constexpr (part + 1 < Ring::num_qk_stages_effective) arrive_full<Ring, part + 1>(ring);
  }

  // The vector that this lane loads in step n of a block: neighbouring lanes load neighbouring
  // vectors of a row.
  struct Vector {
    int row, column;
    PAGODA_DEVICE explicit Vector(int n)
        : row((32 * n + arch::lane_idx()) / across),
          column((32 * n + arch::lane_idx()) % across * elements) {}
  };

  static PAGODA_DEVICE uint64_t shuffle(uint64_t value, int lane) {
    const uint32_t low = arch::shuffle(static_cast<uint32_t>(value), lane);
    const uint32_t high = arch::shuffle(static_cast<uint32_t>(value >> 32U), lane);
    return uint64_t{high} << 32U | low;
  }

  static PAGODA_DEVICE Words load(uint64_t row, int32_t column, int32_t dim, bool is_in_range) {
    Words value{{0, 0, 0, 0}};
    const int32_t count = is_in_range ? dim - column : 0;  // elements in range
    const uint64_t from = row + static_cast<uint64_t>(column) * element_bytes;
    if (count >= elements && from % 16 == 0) {
      return arch::load_read_only(arch::GlobalPtr<const Words>::at_address(from));
    }
    using Bits = std::conditional_t<element_bytes == 1, uint8_t, uint16_t>;
    PAGODA_UNROLL
    for (int i = 0; i < elements; ++i) {
      if (i < count) {
        const uint32_t bits =
            arch::load_read_only(arch::GlobalPtr<const Bits>::at_address(from) + i);
        value.word[i * element_bytes / 4] |= bits << (8U * (i * element_bytes % 4));
      }
    }
    return value;
  }

  // Stores a vector in shared memory; converts e4m3 of the cache to the 16-bit type of Q.
  static PAGODA_DEVICE void store(arch::SharedPtr<T> to, int row, int column, const Words& words) {
    if constexpr (sizeof(T) == element_bytes) {
      arch::store(at(to, row, column), words);
    } else {
      Words wide[2];
      if constexpr (std::same_as<T, arch::Half>) {
        arch::widen_e4m3_f16(words, wide);
      } else {
        arch::widen_e4m3_bf16(words, wide);
      }
      arch::store(at(to, row, column), wide[0]);
      arch::store(at(to, row, column + 8), wide[1]);
    }
  }
  static PAGODA_DEVICE arch::SharedPtr<Words> at(arch::SharedPtr<T> to, int row, int column) {
    constexpr int width = Ops::panel_columns;
    const auto dense = static_cast<uint32_t>(
        ((column / width * tile.BN + row) * width + column % width) * sizeof(T));
    const uint32_t offset = swizzle_address(to.address() + dense, tile.swizzle) - to.address();
    return (to + static_cast<int32_t>(offset / sizeof(T))).template as<Words>();
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  LoadRings<Config> rings_;
  int warp_;
};

}  // namespace pagoda::mha_sm100
