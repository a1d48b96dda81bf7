// Every B fragment that the warps of a CTA get from a KVBuffer, of any class, and the fragments by
// the figures of the PTX ISA and by AMD's register maps.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "arch/cp_async.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "emulator/machine/launch.hpp"
#include "testing/material/expect_report.hpp"
#include "testing/material/kv_buffers.hpp"
#include "testing/material/kv_cache_case.hpp"

namespace pagoda::material {

// `steps` block tiles of a KV tile. The first call of load_from_shared loads `head` column tiles,
// if any; further ones load `part`, the last what is left.
template <operand::KVBuffer Buffer_, int steps_, int part = Buffer_::num_mmas, int head = 0>
struct FragmentKernel {
  using Buffer = Buffer_;
  using T = typename Buffer::T;
  static constexpr int steps = steps_;
  static constexpr int num_tiles = Buffer::SharedIterator::count;
  struct Params {
    operand::KVSource source;
    operand::KeyRows keys;
    int32_t first_key, num_b_rows;
    arch::GlobalPtr<arch::Words<4>> out;  // [steps, num_k_tiles, kThreads, num_mmas]
  };
  struct Storage {
    arch::SharedArray<T, num_tiles * Buffer::smem_layout.size() * 8, 128> tiles;
  };
  static constexpr int kThreads = kThreadsOf<Buffer>, kWarpSize = kWarpSizeOf<Buffer>;
  static constexpr int kVectors = steps * Buffer::num_k_tiles * kThreads * Buffer::num_mmas;
  static constexpr uint32_t kUntouched = 0xabababab;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    Buffer buffer(storage.tiles.data(), arch::thread_idx() / kWarpSize % Buffer::num_warps_n);
    buffer.begin({params.source, params.keys, KVCacheCase::kSequence, params.first_key},
                 params.num_b_rows);
    if constexpr (kIsAsync<Buffer>) {
      static_assert(num_tiles > 1);
      for (int i = 0; i < num_tiles - 1; ++i) load(i, buffer);
    } else {
      for (int i = 0; i < kNumStages<Buffer>; ++i) load(i, buffer);
    }
    [&]<int... step>(std::integer_sequence<int, step...>) { (run_step<step>(params, buffer), ...); }
    (std::make_integer_sequence<int, steps>());
  }

 private:
  static void load(int step, Buffer& buffer) {
    if (step < steps) buffer.load_from_dram();
    if constexpr (kIsAsync<Buffer>) arch::cp_async_commit();
  }
  template <int step>
  static void run_step(const Params& params, Buffer& buffer) {
    if constexpr (kIsAsync<Buffer>) {
      arch::cp_async_wait<num_tiles - 2>();
      buffer.template copy_to_shared<0>();  // of the concept; does nothing
      arch::syncthreads();
      load(step + num_tiles - 1, buffer);
    } else {
      buffer.template copy_to_shared<step % kNumStages<Buffer>>();
      arch::syncthreads();
      load(step + kNumStages<Buffer>, buffer);
    }
    [&]<int... k>(std::integer_sequence<int, k...>) {
      (store_fragments<step, k>(params, buffer), ...);
    }
    (std::make_integer_sequence<int, Buffer::num_k_tiles>());
    buffer.smem_iter.advance();
    if constexpr (num_tiles == 1) arch::syncthreads();  // the next copy takes the tile
  }
  template <int step, int k>
  static void store_fragments(const Params& params, Buffer& buffer) {
    constexpr int mmas = Buffer::num_mmas;
    for (arch::Words<4>& words : buffer.mma_tile) {
      for (uint32_t& word : words.word) word = kUntouched;
    }
    if constexpr (head > 0) buffer.template load_from_shared<k, 0, head>();
    load_parts<k, head>(buffer);
    const int at = ((step * Buffer::num_k_tiles + k) * kThreads + arch::thread_idx()) * mmas;
    for (int n = 0; n < mmas; ++n) arch::store(params.out + (at + n), buffer.get_mma_tile()[n]);
  }
  template <int k, int first>
  static void load_parts(Buffer& buffer) {
    constexpr int left = Buffer::num_mmas - first;
    if constexpr (left > 0) {
      buffer.template load_from_shared<k, first, (left < part ? left : part)>();
      load_parts<k, first + part>(buffer);
    }
  }
};

// Of B: rows k are reduced, columns n are of the product.
struct BIndex {
  int k, n;
};
// The element in half `half` of word `word` that a lane has of k-group `k_mma`, in column tile 0.
//
// "Matrix Fragments for mma.m16n8k16": lane l has column l / 4 of B; register r of a k-step has its
// rows l % 4 * 2 + 8 r and the next. MFMA: lane l has column l % N and, of a k-group, as many
// consecutive rows as all steps take from a lane; transposed V in the order 0, 8, 1, 9, ..., 7, 15.
template <class Buffer>
BIndex fragment_element(int k_mma, int lane, int word, int half) {
  constexpr int group = Buffer::TensorCore::group_size, size = Buffer::MMA_N;
  if constexpr (kWarpSizeOf<Buffer> == 32) {
    return {(k_mma * group + word / 2) * 16 + word % 2 * 8 + lane % 4 * 2 + half, lane / 4};
  } else if constexpr (kIsTransposed<Buffer>) {
    return {16 * k_mma + 4 * (lane / 32) + word + 8 * half, lane % 32};
  } else {
    return {Buffer::MMA_K * group * k_mma + 4 * group * (lane / size) + 2 * word + half,
            lane % size};
  }
}
// What load_from_shared makes of the words that a group of one step has no elements for: MFMA reads
// a vector of 8 bytes and sets the rest of it to zeros.
template <class Buffer>
inline constexpr uint32_t kUnusedWord =
    kWarpSizeOf<Buffer> == 64 && Buffer::TensorCore::transpose_b ? 0 : 0xabababab;

template <class Kernel>
std::vector<uint32_t> expected_fragments(const KVCacheCase& cache, int first_key, int num_b_rows) {
  using Buffer = typename Kernel::Buffer;
  constexpr int group = Buffer::TensorCore::group_size, mmas = Buffer::num_mmas;
  // Element (k, n) of the warp's B in a step.
  const auto element = [&](int step, int warp_n, int k, int n) -> uint32_t {
    n += warp_n * Buffer::config.wsize;
    k += step * Buffer::BK;
    const int row = kIsK<Buffer> ? n : k, column = kIsK<Buffer> ? k : n;
    return row < num_b_rows ? bits_of<typename Kernel::T>(cache.at(first_key + row, column)) : 0;
  };
  std::vector<uint32_t> words;
  for (int step = 0; step < Kernel::steps; ++step) {
    for (int k_mma = 0; k_mma < Buffer::num_k_tiles; ++k_mma) {
      for (int thread = 0; thread < Kernel::kThreads; ++thread) {
        const int lane = thread % Kernel::kWarpSize;
        const int warp_n = thread / Kernel::kWarpSize % Buffer::num_warps_n;
        for (int n = 0; n < mmas; ++n) {
          for (int word = 0; word < 4; ++word) {
            if (word >= 2 * group) {
              words.push_back(kUnusedWord<Buffer>);
              continue;
            }
            const BIndex low = fragment_element<Buffer>(k_mma, lane, word, 0);
            const BIndex high = fragment_element<Buffer>(k_mma, lane, word, 1);
            const int column = n * Buffer::MMA_N;
            words.push_back(element(step, warp_n, low.k, column + low.n) |
                            element(step, warp_n, high.k, column + high.n) << 16);
          }
        }
      }
    }
  }
  return words;
}

// The words of every fragment, or of none if there are reports.
template <class Kernel>
std::vector<uint32_t> fragments(const KVCacheCase& cache, int first_key, int num_b_rows,
                                emulator::Options options, std::string& reports) {
  std::vector<uint32_t> words(4 * static_cast<size_t>(Kernel::kVectors));
  const emulator::Result result = emulator::launch<Kernel>(
      emulator::shape_of<Kernel>("fragments", {1}),
      {cache.source(), cache.keys(), first_key, num_b_rows,
       reinterpret_cast<arch::Words<4>*>(words.data())},
      cache.buffers({emulator::output("out", words.data(), words.size())}), options);
  reports = emulator::all_reports(result);
  if (!reports.empty()) words.clear();
  return words;
}

// What is wrong with the fragments of the first `num_b_rows` keys; "" if nothing is.
template <class Kernel>
std::string wrong_fragments(const KVCacheCase& cache, int num_b_rows = kBN) {
  std::string wrong;
  const std::vector<uint32_t> words = fragments<Kernel>(cache, 0, num_b_rows, {}, wrong);
  const std::vector<uint32_t> expected = expected_fragments<Kernel>(cache, 0, num_b_rows);
  if (wrong.empty() && words.size() != expected.size()) wrong = "the number of words differs";
  for (size_t i = 0; wrong.empty() && i < expected.size(); ++i) {
    if (words[i] == expected[i]) continue;
    constexpr int mmas = Kernel::Buffer::num_mmas;
    wrong = "thread " + std::to_string(i / 4 / mmas % Kernel::kThreads) + ", column tile " +
            std::to_string(i / 4 % mmas) + ", word " + std::to_string(i % 4) + " differs";
  }
  return wrong;
}
// Of all steps of a KV tile of 64 keys and `dim` elements, loaded by calls for `part` column tiles
// each.
template <class Buffer, int dim, int... parts>
std::string wrong_fragments_by_parts(int num_b_rows = kBN) {
  const KVCacheCase cache(
      {.dtype = std::is_same_v<typename Buffer::T, arch::Half> ? DType::kF16 : DType::kBF16,
       .dim = dim},
      num_b_rows);
  constexpr int steps = (kIsK<Buffer> ? dim : kBN) / Buffer::BK;
  std::string wrong;
  ((wrong += wrong_fragments<FragmentKernel<Buffer, steps, parts>>(cache, num_b_rows)), ...);
  return wrong;
}

}  // namespace pagoda::material
