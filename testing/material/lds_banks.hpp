// Bank conflicts in the shared memory of gfx942: 32 banks of 4 bytes. An instruction of a wave
// accesses them in phases; lanes of one phase that need different words of a bank wait for each
// other.
#pragma once

#include <array>
#include <cstddef>

namespace pagoda::material {

using OfLanes = std::array<int, 64>;  // an index for each lane

// How many of `indices` share one of `banks` where most do; 1: no conflict. The same index is read
// once for all.
template <size_t count>
constexpr int most_in_a_bank(const std::array<int, count>& indices, int banks) {
  int most = 0;
  for (size_t i = 0; i < count; ++i) {
    int sharing = 0;
    for (size_t j = 0; j < count; ++j) {
      bool is_first = true;
      for (size_t k = 0; k < j; ++k) is_first = is_first && indices[k] != indices[j];
      if (is_first && indices[j] % banks == indices[i] % banks) ++sharing;
    }
    most = sharing > most ? sharing : most;
  }
  return most;
}

// ds_read_b128 of 16-byte vectors: 8 phases of 8 lanes, first 0 .. 3 and 20 .. 23; the others are
// XORs of their numbers (triton-lang/triton#11365, for MI300).
constexpr int read_conflicts(const OfLanes& vectors) {
  int worst = 0;
  for (size_t phase = 0; phase < 8; ++phase) {
    const size_t flip = phase / 4 * 32 + phase % 4 * 4;
    std::array<int, 8> together{};
    for (size_t i = 0; i < 8; ++i) together[i] = vectors[(i < 4 ? i : 16 + i) ^ flip];
    const int most = most_in_a_bank(together, 8);  // a vector takes 4 of 32 banks
    worst = most > worst ? most : worst;
  }
  return worst;
}
// ds_write_b32: two phases of 32 consecutive lanes (ROCm/hipBLASLt#1180).
constexpr int write_conflicts(const OfLanes& words) {
  int worst = 0;
  for (size_t phase = 0; phase < 2; ++phase) {
    std::array<int, 32> together{};
    for (size_t i = 0; i < 32; ++i) together[i] = words[phase * 32 + i];
    const int most = most_in_a_bank(together, 32);
    worst = most > worst ? most : worst;
  }
  return worst;
}

// Vectors of a B fragment, or of A: lane l reads row l % rows of chunk l / rows, from `row` and
// `chunk` on.
template <class Layout>
constexpr OfLanes fragment_vectors(const Layout& layout, int rows, int row, int chunk) {
  OfLanes vectors{};
  for (size_t lane = 0; lane < 64; ++lane) {
    const int l = static_cast<int>(lane);
    vectors[lane] = layout.index(row + l % rows, chunk + l / rows);
  }
  return vectors;
}
// The worst of all fragments of a tile.
template <class Layout>
constexpr int worst_fragment_read(const Layout& layout, int rows) {
  int worst = 0;
  for (int row = 0; row < layout.rows; row += rows) {
    for (int chunk = 0; chunk < layout.chunks; chunk += 64 / rows) {
      const int most = read_conflicts(fragment_vectors(layout, rows, row, chunk));
      worst = most > worst ? most : worst;
    }
  }
  return worst;
}

}  // namespace pagoda::material
