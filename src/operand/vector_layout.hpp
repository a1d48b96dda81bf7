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

  friend constexpr bool operator==(const VectorSwizzle&, const VectorSwizzle&) = default;

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int operator()(int index) const {
    return index ^ (index >> shift & ((1 << bits) - 1) << base);
  }
};

struct VectorLayout {
  int rows = 0, chunks = 0;
  // Blocked product: blocks [rows, block_chunks], one after the other. Otherwise row-major.
  bool is_blocked = false;
  VectorSwizzle swizzle{};
  int block_chunks = 1;

  friend constexpr bool operator==(const VectorLayout&, const VectorLayout&) = default;

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int size() const { return rows * chunks; }  // vectors
  // Vectors from a row to the next; the page's smem_layout.stride[0], in vectors.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int row_stride() const {
    return is_blocked ? block_chunks : chunks;
  }
  // From a chunk to the next, on average over a block.
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int chunk_stride() const {
    return is_blocked ? rows : 1;
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int index(int row, int chunk) const {
    const int in_block = is_blocked ? chunk % block_chunks : 0;
    return swizzle(row * row_stride() + (chunk - in_block) * chunk_stride() + in_block);
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
  constexpr int block_chunks = layout.block_chunks;
  constexpr bool is_blocked = layout.is_blocked;
  const int in_block = is_blocked ? chunk % block_chunks : 0;
  const int index = row * row_stride + (chunk - in_block) * chunk_stride + in_block;
  return index ^ (index >> shift & mask);
}
// vector_index(row, chunk + further), given vector_index(row, chunk): one XOR and a constant, which
// the instruction's address takes. chunk is a multiple of a power of two above `further`, or the
// other way round, so that their sum carries nothing.
template <VectorLayout layout, int further>
[[nodiscard]] PAGODA_HOST_DEVICE constexpr int further_chunk(int index) {
  if constexpr (layout.is_blocked) {
    constexpr int blocks = (further - further % layout.block_chunks) * layout.chunk_stride();
    return (index ^ (layout.index(0, further) - blocks)) + blocks;
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
// Blocks of 128 bytes of each row. cp.async fetches a sector of 32 bytes once only if its two
// vectors go to one line of shared memory. `rows`: a multiple of 8, `chunks`: of 8.
constexpr VectorLayout panel_layout(int rows, int chunks) {
  return {
      .rows = rows, .chunks = chunks, .is_blocked = true, .swizzle = {3, 0, 3}, .block_chunks = 8};
}

}  // namespace pagoda::operand
