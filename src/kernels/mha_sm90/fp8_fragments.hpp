// Fp8Tile: loads e4m3 elements of K and V from shared memory and converts them to f16 (exactly) as
// B fragments of mma.sync. No synchronisation.
//
// The order of the sum over head dims is free, and so is the numbering of the columns of O. They
// are chosen so that each thread loads 16 neighbouring bytes and no byte moves between threads.
// With t = lane % 4 and g = lane / 4, in a panel of `width` columns (bytes), thread (t, g) loads:
//
//        keys                            columns
//   K    g of every 8                    width / 4 * t ..; four of them a step of the sum (MMA K)
//   V    2 t + {0, 1, 8, 9} of every 16  width / 8 * g ..; one of each n-block of 8 columns (MMA N)
//
// Hence column n of n-block i of a panel is column width / 8 * n + i of the panel of O.
//
// With swizzles of 128 and 64 bytes the eight lanes of a shared memory access have no bank
// conflict, except two of them for V with 64 bytes.
#pragma once

#include <cstdint>

#include "arch/layout/swizzle.hpp"
#include "arch/math.hpp"
#include "arch/memory.hpp"
#include "arch/thread.hpp"
#include "core/target.hpp"

namespace pagoda::mha_sm90 {

template <int rows, int depth, arch::Swizzle swizzle>
struct Fp8Tile {
  static constexpr int width = static_cast<int>(swizzle_width_bytes(swizzle));
  static constexpr int panels = depth / width;
  static constexpr int run = width / 8;  // columns of a thread in a row of V
  using Pointer = arch::SharedPtr<const arch::Float8E4M3>;
  static_assert(width == 128 || width == 64);

  // The swizzle's pattern repeats every 8 rows. So a thread computes one offset; its other offsets
  // are whole multiples of 8 rows or of a panel larger.
  static constexpr int eight_rows = 8 * width, panel_bytes = rows * width;
  static_assert(eight_rows % swizzle_repeat_bytes(swizzle) == 0);
  // Swizzled bytes from the tile's start, where a pattern starts.
  static PAGODA_DEVICE int32_t offset(int row, int column) {
    const auto dense = static_cast<uint32_t>(row * width + column);
    return static_cast<int32_t>(swizzle_address(dense, swizzle));
  }

  // --- K --------------------------------------------------------------------------------------

  static constexpr int key_words = depth / 64;  // 16-byte words of a key that a thread loads
  // First column of this thread's word i.
  static PAGODA_DEVICE int key_column(int i) {
    constexpr int words = width / 64;  // of a panel
    return i / words * width + arch::lane_idx() % 4 * (width / 4) + i % words * 16;
  }
  // Offset of word 0 of key first + lane / 4; `first` is a multiple of 8.
  static PAGODA_DEVICE int32_t key_offset(int first) {
    return offset(first + arch::lane_idx() / 4, key_column(0));
  }
  // Word i of the key 8 * n after that of key_offset.
  static PAGODA_DEVICE arch::Words<4> load_key(Pointer tile, int32_t key_offset, int n, int i) {
    // Words of a panel; the second differs from the first in one bit, swizzled or not.
    constexpr int words = width / 64;
    const int32_t at = (key_offset ^ i % words * 16) + n * eight_rows + i / words * panel_bytes;
    return arch::load((tile + at).template as<const arch::Words<4>>());
  }

  // --- V --------------------------------------------------------------------------------------

  // Offsets of the first columns of keys first + 2 t and first + 2 t + 1; `first` is a multiple of
  // 8.
  struct ValueOffsets {
    int32_t at[2];
  };
  static PAGODA_DEVICE ValueOffsets value_offsets(int first) {
    const int row = first + 2 * (arch::lane_idx() % 4), column = arch::lane_idx() / 4 * run;
    return {{offset(row, column), offset(row + 1, column)}};
  }
  // This thread's elements of 16 keys in a panel.
  struct Values {
    arch::Words<run / 4> key[2][2];  // [8 keys][two neighbours]
  };
  // Those of the keys 16 * n after the offsets'.
  static PAGODA_DEVICE Values load_values(Pointer tile, const ValueOffsets& offsets, int n,
                                          int panel) {
    Values values;
    PAGODA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int32_t at = offsets.at[i % 2] + (2 * n + i / 2) * eight_rows + panel * panel_bytes;
      values.key[i / 2][i % 2] = arch::load((tile + at).template as<const arch::Words<run / 4>>());
    }
    return values;
  }
  // Zeroes the elements of keys `first` .. 15.
  static PAGODA_DEVICE void clear_from(Values& values, int32_t first) {
    PAGODA_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (8 * (i / 2) + 2 * (arch::lane_idx() % 4) + i % 2 < first) continue;
      values.key[i / 2][i % 2] = {};
    }
  }
  // The B fragments of n-blocks 8 * eight .. 8 * eight + 7 of the panel.
  static PAGODA_DEVICE void widen(const Values& values, int eight, uint32_t (&b)[8][2]) {
    PAGODA_UNROLL
    for (int half = 0; half < 2; ++half) {
      arch::Words<4> pairs, wide[2];
      PAGODA_UNROLL
      for (int w = 0; w < 2; ++w) {  // pairs of two keys of one column
        const uint32_t even = values.key[half][0].word[2 * eight + w];
        const uint32_t odd = values.key[half][1].word[2 * eight + w];
        pairs.word[2 * w] = arch::byte_permute(even, odd, 0x5140);
        pairs.word[2 * w + 1] = arch::byte_permute(even, odd, 0x7362);
      }
      arch::widen_e4m3_f16(pairs, wide);
      PAGODA_UNROLL
      for (int i = 0; i < 8; ++i) b[i][half] = wide[i / 4].word[i % 4];
    }
  }
};

}  // namespace pagoda::mha_sm90
