// Tensor memory of Blackwell: 128 lanes x 512 columns of 32 bits per SM. Addresses, the layout of D
// of tcgen05.mma, and the elements that tcgen05.ld, st and cp move. PTX ISA, "Tensor Memory
// Addressing", "Data Path Layout Organization" and "Data Movement Shape", as CUTLASS 4.7.0
// evaluates them; no Blackwell chip has run it yet.
#pragma once

#include <cstdint>

#include "arch/layout/fragment_layout.hpp"
#include "arch/layout/instruction_descriptor.hpp"
#include "core/target.hpp"

namespace pagoda::arch {

inline constexpr int32_t kTmemLanes = 128, kTmemColumns = 512;

// lane << 16 | column
struct TmemPtr {
  uint32_t address = 0;

  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t lane() const {
    return static_cast<int32_t>(address >> 16);
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr int32_t column() const {
    return static_cast<int32_t>(address & 0xffffU);
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr TmemPtr lanes(int32_t n) const {
    return {address + (static_cast<uint32_t>(n) << 16)};
  }
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr TmemPtr columns(int32_t n) const {
    return {address + static_cast<uint32_t>(n)};
  }
  friend bool operator==(const TmemPtr&, const TmemPtr&) = default;
};

PAGODA_HOST_DEVICE constexpr bool is_tmem_allocation(int32_t columns) {
  return columns >= 32 && columns <= kTmemColumns && (columns & (columns - 1)) == 0;
}

// The first of the 32 lanes that a warp may access.
PAGODA_HOST_DEVICE constexpr int32_t tmem_first_lane_of_warp(int32_t warp) {
  return 32 * (warp % 4);
}

// Relative to the instruction's address.
struct TmemIndex {
  int32_t lane = 0, column = 0;
  friend bool operator==(const TmemIndex&, const TmemIndex&) = default;
};

// --- D of tcgen05.mma -------------------------------------------------------------------------

struct TmemAccumulatorIndex {
  int32_t cta = 0;  // of the pair
  TmemIndex at;
  friend bool operator==(const TmemAccumulatorIndex&, const TmemAccumulatorIndex&) = default;
};

// The lane and column of element (row, column) of an m x n accumulator; 32-bit elements, a shape
// that validate_shape() accepts.
PAGODA_HOST_DEVICE constexpr TmemAccumulatorIndex tmem_accumulator(const MmaForm& form, int32_t m,
                                                                   int32_t n, int32_t row,
                                                                   int32_t column) {
  if (form.is_ws) {  // groups of m lanes, each with its part of the columns
    const int32_t share = n * m / kTmemLanes;
    return {0, {row + m * (column / share), column % share}};
  }
  if (form.cta_group == 2) {
    const int32_t rows = m / 2;
    if (m == 256) return {row / rows, {row % rows, column}};
    // 64 rows per CTA: the upper lanes hold the upper half of the columns.
    return {row / rows, {row % rows + 64 * (column / (n / 2)), column % (n / 2)}};
  }
  // M 64 fills the lower half of every warp's lanes; a second tile may start at lane 16.
  if (m == 64) return {0, {row % 16 + 32 * (row / 16), column}};
  return {0, {row, column}};
}

// --- tcgen05.ld and tcgen05.st ----------------------------------------------------------------

enum class TmemShape : uint8_t { k32x32b, k16x64b, k16x128b, k16x256b, k16x32bx2 };

// Registers per thread of repeat .xN.
PAGODA_HOST_DEVICE constexpr int32_t tmem_registers(TmemShape shape, int32_t repeat) {
  switch (shape) {
    case TmemShape::k16x128b: return 2 * repeat;
    case TmemShape::k16x256b: return 4 * repeat;
    default: return repeat;
  }
}

// Whether .xN exists: a power of two, at most 128 registers.
PAGODA_HOST_DEVICE constexpr bool is_tmem_repeat(TmemShape shape, int32_t repeat) {
  return repeat >= 1 && (repeat & (repeat - 1)) == 0 && tmem_registers(shape, repeat) <= 128;
}

// The element that register `r` of `lane` (of the warp) holds. `split` is the immediate of
// 16x32bx2: the columns between its two halves; other shapes have none.
PAGODA_HOST_DEVICE constexpr TmemIndex tmem_element(TmemShape shape, int32_t lane, int32_t r,
                                                    int32_t split = 0) {
  switch (shape) {
    case TmemShape::k32x32b: return {lane, r};
    case TmemShape::k16x64b: return {(lane >> 2) + 8 * (lane & 1), ((lane >> 1) & 1) + 2 * r};
    case TmemShape::k16x128b: return {(lane >> 2) + 8 * (r & 1), (lane & 3) + 4 * (r >> 1)};
    case TmemShape::k16x256b: {  // the accumulator map of wgmma and mma.sync
      const MatrixIndex index = wgmma_accumulator(lane, r);
      return {index.row, index.column};
    }
    default: return {lane & 15, r + split * (lane >> 4)};
  }
}

// --- tcgen05.cp: shared memory to tensor memory -----------------------------------------------

enum class TmemCopyShape : uint8_t {
  k128x256b,
  k128x128b,
  k4x256b,               // one lane of every warp
  k64x128bWarps02And13,  // .warpx2::02_13: rows 0-31 to warps 0 and 2, rows 32-63 to warps 1 and 3
  k64x128bWarps01And23,  // .warpx2::01_23: rows 0-31 to warps 0 and 1, rows 32-63 to warps 2 and 3
  k32x128bWarpx4,        // rows 0-31 to every warp
};

PAGODA_HOST_DEVICE constexpr int32_t tmem_copy_columns(TmemCopyShape shape) {
  return shape == TmemCopyShape::k128x256b || shape == TmemCopyShape::k4x256b ? 8 : 4;
}

PAGODA_HOST_DEVICE constexpr int32_t tmem_copy_rows(TmemCopyShape shape) {
  switch (shape) {
    case TmemCopyShape::k4x256b: return 4;
    case TmemCopyShape::k64x128bWarps02And13:
    case TmemCopyShape::k64x128bWarps01And23: return 64;
    case TmemCopyShape::k32x128bWarpx4: return 32;
    default: return 128;
  }
}

// The source row that lands in `lane` (relative to the address), or -1: the lane is not written.
PAGODA_HOST_DEVICE constexpr int32_t tmem_copy_row(TmemCopyShape shape, int32_t lane) {
  switch (shape) {
    case TmemCopyShape::k4x256b: return lane % 32 == 0 ? lane / 32 : -1;
    case TmemCopyShape::k64x128bWarps02And13: return lane % 64;
    case TmemCopyShape::k64x128bWarps01And23: return lane % 32 + 32 * (lane / 64);
    case TmemCopyShape::k32x128bWarpx4: return lane % 32;
    default: return lane;
  }
}

}  // namespace pagoda::arch
