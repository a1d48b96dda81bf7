// MmaInstruction for MFMA, AMD GPUs (CDNA).
//
// swap_a_b: the instruction multiplies K Q' and V' P', so that a lane's accumulators are scores of
// one query, for several keys, and these are the operand of V' P' without a shuffle. In the words
// of MmaInstruction A is still Q or P, and rows are still queries.
#pragma once

#include <cstdint>

#include "arch/layout/types.hpp"
#include "arch/memory.hpp"
#include "arch/mfma.hpp"
#include "arch/thread.hpp"
#include "core/target.hpp"
#include "operand/tiled_tensor_core.hpp"
#include "operand/vector_layout.hpp"

namespace pagoda::operand {

// M = N = `size`: 32 (32x32x8) or 16 (16x16x16). Of each operand a lane holds row or column lane %
// size, and 4 * group consecutive k of a k-group; k-step s of the group multiplies elements 4 s ..
// 4 s + 3 of all lanes. Which k these are is the same in A and B.
template <class In, int size>
struct MfmaInstruction {
  static constexpr int kLanes = 64;
  static constexpr int kRows = 1, kColumns = size * size / kLanes;
  static constexpr int kRowStride = size, kRowLanes = kLanes / size;
  static constexpr int kAWords = 2, kBWords = 2;
  static constexpr int kStepsOfP = 2;

  static PAGODA_HOST_DEVICE constexpr int row(int lane, int /*r*/) { return lane % size; }
  static PAGODA_HOST_DEVICE constexpr int column(int lane, int i) {
    return i / 4 * (4 * kRowLanes) + lane / size * 4 + i % 4;
  }

  template <VectorLayout layout, int chunk, int group>
  static PAGODA_DEVICE void load_a(uint32_t (&a)[group][kAWords], arch::SharedPtr<In> tile,
                                   int first_row) {
    const int at = vector_index<layout>(first_row + arch::lane_idx() % size, first_chunk<group>());
    const arch::Words<4> words =
        load_fragment<group>(tile + 8 * further_chunk<layout, chunk>(at) + offset<group>());
    PAGODA_UNROLL
    for (int i = 0; i < group * kAWords; ++i) a[i / kAWords][i % kAWords] = words.word[i];
  }

  template <VectorLayout layout, int group, bool transpose_b, int k_mma, int first, int count,
            int entries>
  static PAGODA_DEVICE void load_b(arch::Words<4> (&words)[entries], arch::SharedPtr<In> tile,
                                   int row, int chunk) {
    constexpr int k_group = group * kStep;
    const int lane = arch::lane_idx();
    if constexpr (transpose_b) {
      const int base = vector_index<layout>(row + lane % size, chunk + first_chunk<group>());
      const int at = further_chunk<layout, k_mma * k_group / 8>(base);
      PAGODA_UNROLL
      for (int n = first; n < first + count; ++n) {
        const int further = n * (size / 8) * layout.vectors_of_8_rows();
        words[n] = load_fragment<group>(tile + 8 * (at + further) + offset<group>());
      }
    } else {  // an element at a time: the k of a lane are rows
      const int first_row = row + k_mma * k_group + lane / size * (4 * group);
      PAGODA_UNROLL
      for (int n = first; n < first + count; ++n) {
        const int column = n * size + lane % size;
        PAGODA_UNROLL
        for (int i = 0; i < group * kBWords; ++i) {
          const arch::SharedPtr<In> low = tile + element<layout>(first_row + 2 * i, chunk, column);
          const arch::SharedPtr<In> high =
              tile + element<layout>(first_row + 2 * i + 1, chunk, column);
          words[n].word[i] = arch::load(low.template as<uint16_t>()) |
                             static_cast<uint32_t>(arch::load(high.template as<uint16_t>())) << 16U;
        }
      }
    }
  }

  // The 16 keys of a k-group of two steps are in the order of TransposedKVBuffer: 0, 8, 1, 9, ...
  // A lane holds scores 8 i .. 8 i + 3 of keys 0 .. 3 or 4 .. 7 of the group, the next four of
  // those 8 further on.
  template <int tiles, class Pack>
  static PAGODA_DEVICE void to_a(uint32_t (&a)[kAWords], const float (&d)[tiles][kColumns], int k,
                                 const Pack& pack) {
    static_assert(size == 32);
    const int first = k % 4 / 2 * 8 + k % 2 * 2;
    PAGODA_UNROLL
    for (int i = 0; i < kAWords; ++i) a[i] = pack(d[k / 4][first + i], d[k / 4][first + i + 4]);
  }

  static PAGODA_DEVICE void multiply(float (&d)[kColumns], const uint32_t (&a)[kAWords],
                                     const uint32_t (&b)[kBWords]) {
    if constexpr (size == 32) {
      arch::mfma_32x32x8<In>(d, b, a);
    } else {
      arch::mfma_16x16x16<In>(d, b, a);
    }
  }

 private:
  static constexpr int kStep = 4 * kRowLanes;  // k elements

  // Where a lane's elements of a k-group begin.
  template <int group>
  static PAGODA_DEVICE int first_chunk() {
    return arch::lane_idx() / size * (4 * group) / 8;
  }
  template <int group>
  static PAGODA_DEVICE int offset() {
    return arch::lane_idx() / size * (4 * group) % 8;
  }
  template <int group>
  static PAGODA_DEVICE arch::Words<4> load_fragment(arch::SharedPtr<In> from) {
    static_assert(group <= 2);
    if constexpr (group == 2) return arch::load(from.template as<arch::Words<4>>());
    const auto half = arch::load(from.template as<arch::Words<2>>());
    return {{half.word[0], half.word[1], 0, 0}};
  }
  template <VectorLayout layout>
  static PAGODA_DEVICE int element(int row, int chunk, int column) {
    return vector_index<layout>(row, chunk + column / 8) * 8 + column % 8;
  }
};

template <class In>
struct MmaInstruction<In, MmaShape{32, 32, 8}> : MfmaInstruction<In, 32> {};
template <class In>
struct MmaInstruction<In, MmaShape{16, 16, 16}> : MfmaInstruction<In, 16> {};

}  // namespace pagoda::operand
