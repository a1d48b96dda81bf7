// TiledTensorCore: the matrix instruction of a warp as attention uses it: which lanes hold which
// elements of A (queries or P), B (K or V) and the accumulator, and the loads of fragments from
// shared memory.
//
// `group_size` k-steps of the instruction are loaded together, so that each lane reads 16 bytes at
// a time. `transpose_b`: B is stored as [n][k], a row per column of the product (K: keys x depth);
// otherwise as [k][n] (V: keys x depth).
#pragma once

#include <cstdint>

#include "arch/layout/types.hpp"
#include "arch/memory.hpp"
#include "core/target.hpp"
#include "operand/vector_layout.hpp"

namespace pagoda::operand {

// Of one instruction: D [M, N] += A [M, K] B [K, N].
struct MmaShape {
  int M = 0, N = 0, K = 0;

  friend constexpr bool operator==(const MmaShape&, const MmaShape&) = default;
};

// What TiledTensorCore needs to know about an instruction. Specialised in mma_sync.hpp (NVIDIA) and
// mfma.hpp (AMD).
//
//   kLanes                        of a warp
//   kRows, kColumns               a lane's part of the accumulator: kColumns of each of kRows rows
//   row(lane, r), column(lane, i) where they are in [M, N]
//   kRowStride, kRowLanes         the lanes that share a row: kRowLanes, each kRowStride further
//   kAWords, kBWords              32-bit registers of a lane that hold a fragment
//   kStepsOfP                     k-steps of P V whose A to_a() packs from the same accumulators
//   load_a<layout, chunk>(a[group], tile, row)       A of a k-group from [rows][K], K contiguous
//   load_b<layout, group, transpose, k, ..>(words, tile, row, chunk)
//   to_a(a, d, k)                 A of P V from the accumulators of Q K', k-step k
//   multiply(d, a, b)
template <class In, MmaShape shape>
struct MmaInstruction;

template <class Out_, class In_, MmaShape shape_, int group_size_, bool transpose_b_>
struct TiledTensorCore {
  using Out = Out_;  // of the accumulator
  using In = In_;    // of A and B
  using Instruction = MmaInstruction<In, shape_>;
  static constexpr MmaShape shape = shape_;
  static constexpr int group_size = group_size_;
  static constexpr bool transpose_b = transpose_b_;
  static constexpr int simd_width = 16 / sizeof(In);
  // k elements of a lane's vector of B, over all lanes that hold a column.
  static constexpr int k_group = shape.K * group_size;
  static_assert(Instruction::kBWords * group_size <= 4, "a lane reads at most 16 bytes at once");

  // Fills `mma_tile[first .. first + count)` with k-group `k_mma` of the warp tile that starts at
  // row `row` and vector `chunk` of a tile in shared memory.
  template <VectorLayout layout, int k_mma, int first, int count, int size>
  static PAGODA_DEVICE void load_b(arch::Words<4> (&mma_tile)[size], arch::SharedPtr<In> tile,
                                   int row, int chunk) {
    Instruction::template load_b<layout, group_size, transpose_b, k_mma, first, count>(
        mma_tile, tile, row, chunk);
  }

  // D += A B for k-step `step` of the group.
  static PAGODA_DEVICE void multiply(Out (&d)[Instruction::kRows * Instruction::kColumns],
                                     const uint32_t (&a)[Instruction::kAWords],
                                     const arch::Words<4>& group, int step) {
    uint32_t b[Instruction::kBWords];
    PAGODA_UNROLL
    for (int i = 0; i < Instruction::kBWords; ++i) {
      b[i] = group.word[step * Instruction::kBWords + i];
    }
    Instruction::multiply(d, a, b);
  }
};

}  // namespace pagoda::operand
