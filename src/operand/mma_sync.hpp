// MmaInstruction for mma.sync, NVIDIA GPUs from sm_80 on.
#pragma once

#include <cstdint>
#include <utility>

#include "arch/layout/types.hpp"
#include "arch/ldmatrix.hpp"
#include "arch/memory.hpp"
#include "arch/mma.hpp"
#include "arch/thread.hpp"
#include "core/target.hpp"
#include "operand/tiled_tensor_core.hpp"
#include "operand/vector_layout.hpp"

namespace pagoda::operand {

// mma.sync.m16n8k16. PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type".
template <class In>
struct MmaInstruction<In, MmaShape{16, 8, 16}> {
  static constexpr int kLanes = 32;
  static constexpr int kRows = 2, kColumns = 2;
  static constexpr int kRowStride = 1, kRowLanes = 4;
  static constexpr int kAWords = 4, kBWords = 2;
  static constexpr int kStepsOfP = 1;

  static PAGODA_HOST_DEVICE constexpr int row(int lane, int r) { return lane / 4 + 8 * r; }
  static PAGODA_HOST_DEVICE constexpr int column(int lane, int i) { return lane % 4 * 2 + i; }

  // Four 8 x 8 matrices: rows 0 .. 7 and 8 .. 15 of the first chunk, then of the second.
  template <VectorLayout layout, int chunk, int group>
  static PAGODA_DEVICE void load_a(uint32_t (&a)[group][kAWords], arch::SharedPtr<In> tile,
                                   int first_row) {
    load_a<layout, chunk>(a, tile, first_row, std::make_integer_sequence<int, group>());
  }

  // B fragments of k-group `k_mma`, of `group` k-steps, for column tiles first .. first + count - 1
  // of 8 columns each. `row`, `chunk`: where the warp tile starts.
  template <VectorLayout layout, int group, bool transpose_b, int k_mma, int first, int count,
            int size>
  static PAGODA_DEVICE void load_b(arch::Words<4> (&words)[size], arch::SharedPtr<In> tile, int row,
                                   int chunk) {
    load_b<layout, group, transpose_b, k_mma, first>(words, tile, row, chunk,
                                                     std::make_integer_sequence<int, count>());
  }

  // The accumulators of two neighbouring column tiles, packed, are an A fragment: the lanes and
  // rows agree. pack(low, high): two elements in a register.
  template <int tiles, class Pack>
  static PAGODA_DEVICE void to_a(uint32_t (&a)[kAWords], const float (&d)[tiles][kRows * kColumns],
                                 int k, const Pack& pack) {
    PAGODA_UNROLL
    for (int i = 0; i < kAWords; ++i) {
      const float(&from)[kRows * kColumns] = d[2 * k + i / 2];
      a[i] = pack(from[i % 2 * 2], from[i % 2 * 2 + 1]);
    }
  }

  static PAGODA_DEVICE void multiply(float (&d)[kRows * kColumns], const uint32_t (&a)[kAWords],
                                     const uint32_t (&b)[kBWords]) {
    arch::mma_m16n8k16<In>(d, a, b);
  }

 private:
  template <VectorLayout layout, int chunk, int group, int... step>
  static PAGODA_DEVICE void load_a(uint32_t (&a)[group][kAWords], arch::SharedPtr<In> tile,
                                   int first_row, std::integer_sequence<int, step...> /*steps*/) {
    const int lane = arch::lane_idx();
    constexpr int row_stride = layout.row_stride();  // first_row: a multiple of 8
    const int at = vector_index<layout>(lane % 16, lane / 16) + first_row * row_stride;
    (arch::ldmatrix<4>(a[step], tile + 8 * further_chunk<layout, chunk + 2 * step>(at)), ...);
  }
  template <VectorLayout layout, int group, bool transpose_b, int k_mma, int first, int size,
            int... n>
  static PAGODA_DEVICE void load_b(arch::Words<4> (&words)[size], arch::SharedPtr<In> tile, int row,
                                   int chunk, std::integer_sequence<int, n...> /*columns*/) {
    const int lane = arch::lane_idx();
    constexpr int pairs = sizeof...(n) / 2;
    // Two column tiles at a time. Those of V are two chunks, the first of which is even.
    if constexpr (group == 1 && sizeof...(n) % 2 == 0 && (transpose_b || first % 2 == 0)) {
      load_pairs<layout, transpose_b, k_mma, first>(words, tile, row, chunk,
                                                    std::make_integer_sequence<int, pairs>());
    } else if constexpr (transpose_b) {  // a matrix: 8 columns of the product, 8 elements of k each
      constexpr int matrices = 2 * group, step = layout.vectors_of_8_rows();
      const int base = vector_index<layout>(row + lane % 8, chunk + lane / 8 % matrices);
      const int at = further_chunk<layout, k_mma * matrices>(base);
      (load<false, matrices>(words[first + n], tile + 8 * (at + (first + n) * step)), ...);
    } else {  // a matrix: 8 elements of k, 8 columns of the product each
      constexpr int matrices = 2 * group, k = k_mma * matrices * layout.vectors_of_8_rows();
      const int at = vector_index<layout>(row + lane % (8 * matrices), chunk);
      (load<true, matrices>(words[first + n],
                            tile + 8 * (further_chunk<layout, first + n>(at) + k)),
       ...);
    }
  }
  template <VectorLayout layout, bool transpose_b, int k_mma, int first, int size, int... pair>
  static PAGODA_DEVICE void load_pairs(arch::Words<4> (&words)[size], arch::SharedPtr<In> tile,
                                       int row, int chunk,
                                       std::integer_sequence<int, pair...> /*pairs*/) {
    constexpr int rows_8 = layout.vectors_of_8_rows();
    const int lane = arch::lane_idx();
    if constexpr (transpose_b) {
      const int base = vector_index<layout>(row + lane / 16 * 8 + lane % 8, chunk + lane / 8 % 2);
      const int at = further_chunk<layout, 2 * k_mma>(base);
      (load_pair<false>(words[first + 2 * pair], words[first + 2 * pair + 1],
                        tile + 8 * (at + (first + 2 * pair) * rows_8)),
       ...);
    } else {
      const int at = vector_index<layout>(row + lane % 16, chunk + lane / 16);
      (load_pair<true>(
           words[first + 2 * pair], words[first + 2 * pair + 1],
           tile + 8 * (further_chunk<layout, first + 2 * pair>(at) + 2 * k_mma * rows_8)),
       ...);
    }
  }
  template <bool is_transposed>
  static PAGODA_DEVICE void load_pair(arch::Words<4>& a, arch::Words<4>& b,
                                      arch::SharedPtr<In> row) {
    arch::Words<4> both;
    load<is_transposed, 4>(both, row);
    a.word[0] = both.word[0];
    a.word[1] = both.word[1];
    b.word[0] = both.word[2];
    b.word[1] = both.word[3];
  }
  template <bool is_transposed, int matrices>
  static PAGODA_DEVICE void load(arch::Words<4>& words, arch::SharedPtr<In> row) {
    uint32_t out[matrices];
    if constexpr (is_transposed) {
      arch::ldmatrix_transposed<matrices>(out, row);
    } else {
      arch::ldmatrix<matrices>(out, row);
    }
    set(words, out);
  }
  template <int count>
  static PAGODA_DEVICE void set(arch::Words<4>& words, const uint32_t (&from)[count]) {
    PAGODA_UNROLL
    for (int i = 0; i < count; ++i) words.word[i] = from[i];
  }
};

}  // namespace pagoda::operand
