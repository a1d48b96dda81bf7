// GatheredRows: rows of K or V that a warp copies to shared memory through registers, where TMA
// can't load them. Pages have any size, rows any stride; elements are of Q's type, or e4m3 that is
// converted to it. Each lane looks up the pages of its own rows, shuffles share the addresses, and
// neighbouring lanes load neighbouring vectors of 16 bytes.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "arch/layout/swizzle.hpp"
#include "arch/math.hpp"
#include "arch/memory.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "kernels/common/attention_params.hpp"
#include "operand/key_rows.hpp"

namespace pagoda::kernels::sm100 {

// The warps that gather a tile; each has an equal number of its rows.
inline constexpr int kGatherWarps = 2;

// K or V of one KV head in global memory, and its head dim.
struct GatheredOperand {
  arch::GlobalPtr<const char> head;
  RowsView view;
  int32_t dim;
};

// K: k_data, k_rows and dim_qk of `params`; V likewise. `element_bytes`: of the cache.
template <int element_bytes>
PAGODA_DEVICE GatheredOperand gathered_k(const AttentionParams& params, int32_t kv_head) {
  return {params.k_data.as<const char>() + kv_head * params.k_rows.head_stride * element_bytes,
          params.k_rows, params.dim_qk};
}
template <int element_bytes>
PAGODA_DEVICE GatheredOperand gathered_v(const AttentionParams& params, int32_t kv_head) {
  return {params.v_data.as<const char>() + kv_head * params.v_rows.head_stride * element_bytes,
          params.v_rows, params.dim_vo};
}

// A warp's part of a tile in shared memory of `tile_rows` rows and `columns` columns of T, in
// panels as wide as the swizzle. All lanes call every function.
template <class T, int element_bytes, int tile_rows, int columns, arch::Swizzle swizzle>
class GatheredRows {
 public:
  using Words = arch::Words<4>;
  static constexpr int warp_rows = tile_rows / kGatherWarps;
  static constexpr int block = warp_rows < 32 ? warp_rows : 32;  // rows; each lane looks up one
  static constexpr int blocks = warp_rows / block;
  static constexpr int elements = 16 / element_bytes;       // of a vector
  static constexpr int across = columns / elements;         // vectors of a row
  static constexpr int steps = (block * across + 31) / 32;  // of a warp: one vector per lane
  // Steps whose loads are in flight together.
  static constexpr int batch = steps % 4 == 0 ? 4 : steps % 2 == 0 ? 2 : 1;
  // Only tiles smaller than any compiled one (testing/emulate) leave lanes without a vector.
  static constexpr bool has_idle_lanes = block * across < 32;
  static_assert(warp_rows % block == 0 && (block * across % 32 == 0 || has_idle_lanes));

  // Looks up the rows of warp `warp` (0 or 1): those of keys first_key + warp * warp_rows .. Keys
  // from num_keys on are out of range.
  PAGODA_DEVICE GatheredRows(const GatheredOperand& from, const operand::SequenceRows& keys,
                             int32_t first_key, int32_t num_keys, int warp)
      : first_row_(warp * warp_rows), rows_left_(num_keys - first_key - first_row_) {
    PAGODA_UNROLL
    for (int r = 0; r < blocks; ++r) {
      const int32_t row = block * r + arch::lane_idx();
      operand::KeyCoordinates place{};
      if (row < rows_left_) place = keys.at(static_cast<uint32_t>(first_key + first_row_ + row));
      const int64_t at = place.outer * from.view.sequence_stride + place.row * from.view.row_stride;
      addresses_[r] = (from.head + at * element_bytes).address();
    }
  }

  // Copies columns begin .. begin + columns - 1 to the tile `to`, which consists of parts of
  // `part_rows` rows. Columns from `end` on and rows out of range become zeros. The caller fences
  // the stores for the async proxy.
  template <int part_rows = tile_rows>
  PAGODA_DEVICE void copy(arch::SharedPtr<T> to, int32_t begin, int32_t end) const {
    PAGODA_UNROLL
    for (int r = 0; r < blocks; ++r) {
      PAGODA_NO_UNROLL
      for (int n = 0; n < steps; n += batch) {
        Words words[batch];
        PAGODA_UNROLL
        for (int i = 0; i < batch; ++i) {
          const Vector vector(n + i);
          const uint64_t row = shuffle(addresses_[r], vector.row);
          words[i] = load(row, begin + vector.column, end, block * r + vector.row < rows_left_);
        }
        PAGODA_UNROLL
        for (int i = 0; i < batch; ++i) {
          const Vector vector(n + i);
          if (has_idle_lanes && vector.row >= block) continue;
          store<part_rows>(to, first_row_ + block * r + vector.row, vector.column, words[i]);
        }
      }
    }
  }

 private:
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

  static PAGODA_DEVICE Words load(uint64_t row, int32_t column, int32_t end, bool is_in_range) {
    Words value{{0, 0, 0, 0}};
    const int32_t count = is_in_range ? end - column : 0;  // elements in range
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
  template <int part_rows>
  static PAGODA_DEVICE void store(arch::SharedPtr<T> to, int row, int column, const Words& words) {
    if constexpr (sizeof(T) == element_bytes) {
      arch::store(at<part_rows>(to, row, column), words);
    } else {
      Words wide[2];
      if constexpr (std::same_as<T, arch::Half>) {
        arch::widen_e4m3_f16(words, wide);
      } else {
        arch::widen_e4m3_bf16(words, wide);
      }
      arch::store(at<part_rows>(to, row, column), wide[0]);
      arch::store(at<part_rows>(to, row, column + 8), wide[1]);
    }
  }
  template <int part_rows>
  static PAGODA_DEVICE arch::SharedPtr<Words> at(arch::SharedPtr<T> to, int row, int column) {
    constexpr int width = static_cast<int>(swizzle_width_bytes(swizzle) / sizeof(T));  // of a panel
    const int part = part_rows == tile_rows ? 0 : row / part_rows;
    const int line = column / width * part_rows + row - part * part_rows;  // of the part
    const auto dense = static_cast<uint32_t>(
        (part * part_rows * columns + line * width + column % width) * sizeof(T));
    const uint32_t offset = swizzle_address(to.address() + dense, swizzle) - to.address();
    return (to + static_cast<int32_t>(offset / sizeof(T))).template as<Words>();
  }

  int32_t first_row_, rows_left_;
  uint64_t addresses_[blocks];  // those of out-of-range rows are never read
};

}  // namespace pagoda::kernels::sm100
