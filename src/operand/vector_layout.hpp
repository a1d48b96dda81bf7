// VectorLayout: where the 16-byte vectors of a tile [rows, columns] of 16-bit elements are in
// shared memory. A vector is 8 columns of a row, a chunk.
#pragma once

#include <bit>

#include "core/target.hpp"

namespace pagoda::operand {

// XOR swizzle of vector indices: bits [base, base + bits) are XORed with those `shift` above them.
// CuTe's Swizzle<bits, base, shift>.
struct VectorSwizzle {
  int bits = 0, base = 0, shift = 0;

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int operator()(int index) const {
    return index ^ (index >> shift & ((1 << bits) - 1) << base);
  }
};

struct VectorLayout {
  int rows = 0, chunks = 0;
  // Blocked product: a block [rows, 8] for each chunk, one after the other. Otherwise row-major.
  bool is_blocked = false;
  VectorSwizzle swizzle{};

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int size() const { return rows * chunks; }  // vectors
  // Vectors from a row to the next; the page's smem_layout.stride[0], in vectors.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int row_stride() const {
    return is_blocked ? 1 : chunks;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int chunk_stride() const {
    return is_blocked ? rows : 1;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int index(int row, int chunk) const {
    return swizzle(row * row_stride() + chunk * chunk_stride());
  }
  // index(row + 8, chunk) - index(row, chunk): the same everywhere if repeats_every_8_rows().
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int vectors_of_8_rows() const {
    return 8 * row_stride();
  }
  [[nodiscard]] constexpr bool repeats_every_8_rows() const {
    for (int row = 0; row + 8 < rows; ++row) {
      for (int chunk = 0; chunk < chunks; ++chunk) {
        if (index(row + 8, chunk) - index(row, chunk) != vectors_of_8_rows()) return false;
      }
    }
    return true;
  }
};

// layout.index(row, chunk), where device code has no address of `layout`.
template <VectorLayout layout>
[[nodiscard]] PAGODA_HOST_DEVICE constexpr int vector_index(int row, int chunk) {
  constexpr int row_stride = layout.row_stride(), chunk_stride = layout.chunk_stride();
  constexpr int mask = ((1 << layout.swizzle.bits) - 1) << layout.swizzle.base;
  constexpr int shift = layout.swizzle.shift;
  const int index = row * row_stride + chunk * chunk_stride;
  return index ^ (index >> shift & mask);
}
// vector_index(row, chunk + further), given vector_index(row, chunk): one XOR and a constant, which
// the instruction's address takes. chunk is a multiple of a power of two above `further`, or the
// other way round, so that their sum carries nothing.
template <VectorLayout layout, int further>
[[nodiscard]] PAGODA_HOST_DEVICE constexpr int further_chunk(int index) {
  if constexpr (layout.is_blocked) {
    constexpr int swizzle = layout.index(0, further) - further * layout.chunk_stride();
    return (index ^ swizzle) + further * layout.chunk_stride();
  } else {
    return index ^ further;
  }
}

// The swizzle of a row-major tile under which the 8 rows of a matrix fragment lie in 8 different
// groups of 4 banks. `chunks`: a power of two.
constexpr VectorSwizzle row_major_swizzle(int chunks) {
  int shift = 0;  // log2 of chunks, or 3: rows shorter than 128 bytes share their banks
  while (shift < 3 && (1 << shift) < chunks) ++shift;
  int bits = shift;
  int distance = 3;
  while ((1 << distance) < chunks) ++distance;
  return {bits, 0, distance};
}
// The swizzle of a blocked tile that also spreads the stores of 2 rows x 4 chunks over all banks.
// `rows`: a power of two of at least 8.
constexpr VectorSwizzle blocked_swizzle(int rows) {
  return {2, 1, std::countr_zero(static_cast<unsigned>(rows)) - 1};
}
// A blocked tile for threads that store 128 consecutive bytes of a row, and for fragments: each row
// of a block is XORed with its chunk. `rows`: a power of two of at least 8.
constexpr VectorLayout blocked_layout(int rows, int chunks) {
  return {.rows = rows,
          .chunks = chunks,
          .is_blocked = true,
          .swizzle = {3, 0, std::countr_zero(static_cast<unsigned>(rows))}};
}

}  // namespace pagoda::operand
