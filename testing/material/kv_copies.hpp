// Block tiles that a KVBufferImpl or TransposedKVBuffer copies to shared memory, and those places
// by the documented layouts.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "emulator/machine/launch.hpp"
#include "testing/material/expect_report.hpp"
#include "testing/material/kv_buffers.hpp"
#include "testing/material/kv_cache_case.hpp"

namespace pagoda::material {

// `steps` block tiles, each copied to the next tile of shared memory, from the register stage
// `shift` after the one that was loaded for it. Then all of shared memory.
template <class Buffer_, int steps_, int shift = 0>
struct CopyKernel {
  using Buffer = Buffer_;
  static constexpr int steps = steps_;
  static constexpr int num_tiles = Buffer::SharedIterator::count;
  static constexpr int kTile = Buffer::smem_layout.size() * 8;  // elements
  struct Params {
    operand::KVSource source;
    operand::KeyRows keys;
    int32_t first_key, num_b_rows;
    arch::GlobalPtr<uint16_t> out;  // [num_tiles, kTile]
  };
  struct Storage {
    arch::SharedArray<typename Buffer::T, num_tiles * kTile, 128> tiles;
  };
  static constexpr int kThreads = kThreadsOf<Buffer>, kWarpSize = kWarpSizeOf<Buffer>;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    Buffer buffer(storage.tiles.data(), 0);
    buffer.begin({params.source, params.keys, KVCacheCase::kSequence, params.first_key},
                 params.num_b_rows);
    for (int i = 0; i < kNumStages<Buffer>; ++i) buffer.load_from_dram();
    [&]<int... step>(std::integer_sequence<int, step...>) { (run_step<step>(buffer), ...); }
    (std::make_integer_sequence<int, steps>());
    arch::syncthreads();
    for (int i = arch::thread_idx(); i < num_tiles * kTile; i += kThreads) {
      arch::store(params.out + i, arch::load(storage.tiles.at(i)).bits);
    }
  }

 private:
  template <int step>
  static void run_step(Buffer& buffer) {
    buffer.template copy_to_shared<(step + shift) % kNumStages<Buffer>>();
    if (step + kNumStages<Buffer> < steps) buffer.load_from_dram();
    buffer.smem_iter.advance();
  }
};

// Shared memory after the launch; nothing if there are reports.
template <class Kernel>
std::vector<uint16_t> copied_tiles(const KVCacheCase& cache, int first_key, int num_b_rows,
                                   std::string& reports) {
  std::vector<uint16_t> out(static_cast<size_t>(Kernel::num_tiles * Kernel::kTile));
  const emulator::Result result =
      emulator::launch<Kernel>(emulator::shape_of<Kernel>("copy", {1}),
                               {cache.source(), cache.keys(), first_key, num_b_rows, out.data()},
                               cache.buffers({emulator::output("out", out.data(), out.size())}));
  reports = emulator::all_reports(result);
  if (!reports.empty()) out.clear();
  return out;
}

// The same; the reports are an exception.
template <class Kernel>
std::vector<uint16_t> copied_tiles(const KVCacheCase& cache, int first_key, int num_b_rows) {
  std::string reports;
  std::vector<uint16_t> tiles = copied_tiles<Kernel>(cache, first_key, num_b_rows, reports);
  if (!reports.empty()) throw std::runtime_error(reports);
  return tiles;
}

// Where element (row, column) of a block tile is. Transposed: blocks of 8 of the keys 0, 8, 1, 9,
// ..., 7, 15 of each 16, a vector for each column; columns c .. c + 7 differ by an XOR with c / 8.
// Otherwise the page's layouts; the swizzle as CuTe defines it.
template <class Buffer>
int place_in_tile(int row, int column) {
  constexpr operand::KVBufferConfig config = Buffer::config;
  if constexpr (kIsTransposed<Buffer>) {
    const int in_order = row % 8 * 2 + row % 16 / 8;
    const int block = row / 16 * 2 + in_order / 8;
    const int vector = block * config.btile_dim1 + column / 8 * 8 + (column % 8 ^ column / 8 % 8);
    return vector * 8 + in_order % 8;
  } else {
    constexpr operand::VectorSwizzle swizzle = Buffer::smem_layout.swizzle;
    int vector = Buffer::smem_layout.is_blocked ? column / 8 * config.btile_dim0 + row
                                                : row * (config.btile_dim1 / 8) + column / 8;
    const int mask = ((1 << swizzle.bits) - 1) << (swizzle.base + swizzle.shift);
    vector ^= (vector & mask) >> swizzle.shift;
    return vector * 8 + column % 8;
  }
}
// Shared memory after the launch, as it must be.
template <class Kernel>
std::vector<uint16_t> expected_tiles(const KVCacheCase& cache, int first_key, int num_b_rows) {
  using Buffer = typename Kernel::Buffer;
  constexpr operand::KVBufferConfig config = Buffer::config;
  std::vector<uint16_t> out(static_cast<size_t>(Kernel::num_tiles * Kernel::kTile), 0xabab);
  for (int step = 0; step < Kernel::steps; ++step) {
    for (int row = 0; row < config.btile_dim0; ++row) {
      for (int column = 0; column < config.btile_dim1; ++column) {
        const int in_tile = row + (kIsK<Buffer> ? 0 : step * config.btile_dim0);
        const int of_head = column + (kIsK<Buffer> ? step * config.btile_dim1 : 0);
        const float value = in_tile < num_b_rows ? cache.at(first_key + in_tile, of_head) : 0;
        out[static_cast<size_t>(step % Kernel::num_tiles * Kernel::kTile +
                                place_in_tile<Buffer>(row, column))] =
            bits_of<typename Buffer::T>(value);
      }
    }
  }
  return out;
}
// What is wrong with the copies of `steps` block tiles; "" if nothing is.
template <class Buffer, int steps>
std::string wrong_copies(const KVCacheCase& cache, int first_key, int num_b_rows) {
  using Kernel = CopyKernel<Buffer, steps>;
  std::string wrong;
  const std::vector<uint16_t> tiles = copied_tiles<Kernel>(cache, first_key, num_b_rows, wrong);
  const std::vector<uint16_t> expected = expected_tiles<Kernel>(cache, first_key, num_b_rows);
  for (size_t i = 0; wrong.empty() && i < expected.size(); ++i) {
    if (tiles[i] != expected[i]) wrong = "element " + std::to_string(i) + " differs";
  }
  if (wrong.empty()) return "";
  return cache.format().name() + ", key " + std::to_string(first_key) + ", rows " +
         std::to_string(num_b_rows) + ": " + wrong;
}

}  // namespace pagoda::material
