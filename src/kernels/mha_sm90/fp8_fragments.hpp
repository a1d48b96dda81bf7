// Keys and values of e4m3 in shared memory, read and widened (exactly, to f16) as the B operands of
// mma.sync. No synchronisation.
//
// The sum over head dims may run in any order, and so may the columns of O be numbered: each thread
// takes 16 bytes where they lie, and no byte moves between threads. With t = lane % 4 and
// g = lane / 4, in a panel of `width` columns (bytes):
//
//   K   key g of 8           columns width / 4 * t ..     four at a time make a step of the sum
//   V   keys 2 t + {0, 1, 8, 9} of 16   columns width / 8 * g ..   one of each n-block of 8 columns
//   O   so column n of n-block i of a panel is column width / 8 * n + i of the panel
//
// By the swizzles of 128 and 64 bytes the eight lanes that are served at once meet no bank twice (V at
// 64 bytes: two of them do).
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

  // The swizzle's pattern begins anew every 8 rows: a thread computes its place once, the others lie
  // whole multiples of 8 rows or of a panel behind it.
  static constexpr int eight_rows = 8 * width, panel_bytes = rows * width;
  static_assert(eight_rows % swizzle_repeat_bytes(swizzle) == 0);
  // Bytes from the tile's start, which is the start of a pattern.
  static PAGODA_DEVICE int32_t place(int row, int column) {
    const auto dense = static_cast<uint32_t>(row * width + column);
    return static_cast<int32_t>(swizzle_address(dense, swizzle));
  }

  // --- K --------------------------------------------------------------------------------------

  static constexpr int key_words = depth / 64;  // of 16 bytes, of a thread and a key
  // First of the 16 columns of word i of this thread.
  static PAGODA_DEVICE int key_column(int i) {
    constexpr int words = width / 64;  // of a panel
    return i / words * width + arch::lane_idx() % 4 * (width / 4) + i % words * 16;
  }
  // Of word 0 of key first + lane / 4; `first` is a multiple of 8.
  static PAGODA_DEVICE int32_t key_place(int first) {
    return place(first + arch::lane_idx() / 4, key_column(0));
  }
  // Word i of the key 8 * n behind that.
  static PAGODA_DEVICE arch::Words<4> load_key(Pointer tile, int32_t key_place, int n, int i) {
    constexpr int words =
        width / 64;  // the second is the first's neighbour: one bit, swizzled or not
    const int32_t at = (key_place ^ i % words * 16) + n * eight_rows + i / words * panel_bytes;
    return arch::load((tile + at).template as<const arch::Words<4>>());
  }

  // --- V --------------------------------------------------------------------------------------

  // Of the first columns of keys first + 2 t and first + 2 t + 1; `first` is a multiple of 8.
  struct ValuePlaces {
    int32_t at[2];
  };
  static PAGODA_DEVICE ValuePlaces value_places(int first) {
    const int row = first + 2 * (arch::lane_idx() % 4), column = arch::lane_idx() / 4 * run;
    return {{place(row, column), place(row + 1, column)}};
  }
  // What a thread has of 16 keys in a panel.
  struct Values {
    arch::Words<run / 4> key[2][2];  // of 8 keys, of two neighbours
  };
  // Of the keys 16 * n behind the places.
  static PAGODA_DEVICE Values load_values(Pointer tile, const ValuePlaces& places, int n,
                                          int panel) {
    Values values;
    PAGODA_UNROLL
    for (int i = 0; i < 4; ++i) {
      const int32_t at = places.at[i % 2] + (2 * n + i / 2) * eight_rows + panel * panel_bytes;
      values.key[i / 2][i % 2] = arch::load((tile + at).template as<const arch::Words<run / 4>>());
    }
    return values;
  }
  // Zeros instead of the keys from `first` of the 16 on.
  static PAGODA_DEVICE void clear_from(Values& values, int32_t first) {
    PAGODA_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (8 * (i / 2) + 2 * (arch::lane_idx() % 4) + i % 2 < first) continue;
      values.key[i / 2][i % 2] = {};
    }
  }
  // The operands of n-blocks 8 * eight .. 8 * eight + 7 of the panel.
  static PAGODA_DEVICE void widen(const Values& values, int eight, uint32_t (&b)[8][2]) {
    PAGODA_UNROLL
    for (int half = 0; half < 2; ++half) {
      arch::Words<4> pairs, wide[2];
      PAGODA_UNROLL
      for (int w = 0; w < 2; ++w) {  // both keys of a column next to each other
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
