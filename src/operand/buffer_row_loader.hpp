// RowLoader for vectors, on AMD: where the rows of a KV tile follow each other in memory, a buffer
// resource reads them, and its bounds make rows that do not exist zeros without a branch.
#pragma once

#include <cstdint>

#include "arch/buffer.hpp"
#include "arch/layout/types.hpp"
#include "arch/memory.hpp"
#include "core/target.hpp"
#include "operand/kv_buffer.hpp"

namespace pagoda::operand {

template <class T, int BN>
class RowLoader<T, BN, Elements::kVectors> {
 public:
  // Rows through a buffer, at an offset, or one by one.
  struct BufferRows {};
  struct Row {
    uint32_t offset = 0;
    arch::GlobalPtr<const char> from = nullptr;  // nullptr: no row
  };

  PAGODA_DEVICE void begin(const KVTile<BN>& tile, int32_t bounds) {
    const KVSource& source = tile.source;
    // Rows ascend without overlap, so that one past the last is out of bounds; offsets of 32 bits
    // reach all rows, and kNowhere is past them.
    is_buffer_ = tile.is_contiguous() && source.row_bytes >= 2 * source.dim &&
                 source.row_bytes < kNowhere / BN;
    const int32_t rows = is_buffer_ ? existing_rows(bounds) : 0;
    const int64_t bytes = rows > 0 ? (rows - 1) * source.row_bytes + 2 * source.dim : 0;
    buffer_ = arch::make_buffer(rows > 0 ? tile.template row<true>(0) : source.data,
                                static_cast<uint32_t>(bytes));
  }
  template <class Load>
  PAGODA_DEVICE void choose(const Load& load) const {
    if (is_buffer_) {
      load(BufferRows{});
    } else {
      load(SingleRows{});
    }
  }
  [[nodiscard]] static PAGODA_DEVICE Row row(BufferRows /*rows*/, const KVTile<BN>& tile,
                                             int32_t /*bounds*/, int32_t row, bool is_wanted) {
    return {is_wanted ? static_cast<uint32_t>(row * tile.source.row_bytes) : kNowhere};
  }
  [[nodiscard]] static PAGODA_DEVICE Row row(SingleRows /*rows*/, const KVTile<BN>& tile,
                                             int32_t bounds, int32_t row, bool is_wanted) {
    return {0, is_wanted && row < existing_rows(bounds) ? tile.row(row) : nullptr};
  }
  // Eight elements from `column` on; zeros past the head dim, or of no row.
  [[nodiscard]] PAGODA_DEVICE arch::Words<4> load(BufferRows /*rows*/, const KVTile<BN>& tile,
                                                  const Row& row, int32_t column) const {
    const bool is_inside = column < tile.source.dim;
    return arch::load_buffer(buffer_,
                             is_inside ? row.offset + static_cast<uint32_t>(2 * column) : kNowhere);
  }
  [[nodiscard]] static PAGODA_DEVICE arch::Words<4> load(SingleRows /*rows*/,
                                                         const KVTile<BN>& tile, const Row& row,
                                                         int32_t column) {
    if (column >= tile.source.dim || row.from == nullptr) return {{0, 0, 0, 0}};
    return arch::load_read_only((row.from + 2 * column).template as<const arch::Words<4>>());
  }
  [[nodiscard]] static PAGODA_DEVICE const arch::Words<4>& widened(const KVTile<BN>& /*tile*/,
                                                                   const arch::Words<4>& from) {
    return from;
  }

 private:
  static constexpr uint32_t kNowhere = uint32_t{1} << 31U;

  arch::BufferResource buffer_;
  bool is_buffer_ = false;
};

}  // namespace pagoda::operand
