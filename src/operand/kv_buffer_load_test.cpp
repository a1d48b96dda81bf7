// KVBufferImpl::load_from_dram: which elements the registers of a thread hold, in which stage. What
// must not be read holds NaN and is outside of every buffer of the launch.
#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "arch/thread.hpp"
#include "emulator/machine/launch.hpp"
#include "operand/kv_buffer.hpp"
#include "testing/material/expect_report.hpp"
#include "testing/material/kv_buffers.hpp"
#include "testing/material/kv_cache_case.hpp"

namespace pagoda::operand {
namespace {

using namespace material;
using arch::BFloat16;
using emulator::all_reports;

constexpr uint32_t kUntouched = 0xabababab;

// `loads` block tiles from block tile `first_step` on; then the registers of all threads.
template <class Buffer_, int loads_>
struct LoadKernel {
  using Buffer = Buffer_;
  static constexpr int loads = loads_;
  static constexpr int kVectors = kNumStages<Buffer> * Buffer::stage_vectors;  // of a thread
  struct Params {
    KVSource source;
    KeyRows keys;
    int32_t first_key, num_b_rows, first_step;
    arch::GlobalPtr<arch::Words<4>> out;  // [kThreads, kVectors]
    arch::GlobalPtr<int32_t> load_ids;    // [loads + 1]: load_tile_id before each load, and after
  };
  struct Storage {
    arch::SharedArray<typename Buffer::T, Buffer::smem_layout.size() * 8, 128> tile;
  };
  static constexpr int kThreads = kBufferThreads;

  static PAGODA_DEVICE void run(const Params& params) {
    const int thread = arch::thread_idx();
    Buffer buffer(arch::shared_storage<Storage>().tile.data(), 0);
    for (arch::Words<4>& words : buffer.load_tile) {
      for (uint32_t& word : words.word) word = kUntouched;
    }
    buffer.begin({params.source, params.keys, KVCacheCase::kSequence, params.first_key},
                 params.num_b_rows, params.first_step);
    for (int i = 0; i <= loads; ++i) {
      if (thread == 0) arch::store(params.load_ids + i, buffer.load_tile_id);
      if (i < loads) buffer.load_from_dram();
    }
    for (int i = 0; i < kVectors; ++i) {
      arch::store(params.out + (thread * kVectors + i), buffer.load_tile[i]);
    }
  }
};

struct LoadRun {
  std::vector<uint32_t> words;
  std::vector<int32_t> load_ids;
};
template <class Kernel>
LoadRun load(const KVCacheCase& cache, int first_key, int num_b_rows, int first_step = 0) {
  LoadRun run{std::vector<uint32_t>(4UL * Kernel::kThreads * Kernel::kVectors),
              std::vector<int32_t>(Kernel::loads + 1, -1)};
  const emulator::Result result = emulator::launch<Kernel>(
      emulator::shape_of<Kernel>("load", {1}),
      {cache.source(), cache.keys(), first_key, num_b_rows, first_step,
       reinterpret_cast<arch::Words<4>*>(run.words.data()), run.load_ids.data()},
      cache.buffers({emulator::output("out", run.words.data(), run.words.size()),
                     emulator::output("ids", run.load_ids.data(), run.load_ids.size())}));
  EXPECT_EQ(all_reports(result), "");
  return run;
}

// The registers after `loads` loads. Thread t of `threads` has row t / chunks and chunk t % chunks
// of the thread layout, which moves over the rows and, inside, over the chunks of the block tile.
struct Tile {
  int rows, columns, axis;  // block tile; axis 0: the next tile is below, 1: to the right
  int thread_rows, thread_chunks;
  int stages, stage_vectors;
};
std::vector<uint32_t> expected_registers(const Tile& tile, const KVCacheCase& cache, int first_key,
                                         int num_b_rows, int first_step, int loads) {
  const auto per_thread = static_cast<size_t>(tile.stages * tile.stage_vectors);
  std::vector<uint32_t> words(4 * kBufferThreads * per_thread, kUntouched);
  const int size = static_cast<int>(size_bytes(cache.format().dtype));
  for (int load = 0; load < loads; ++load) {
    const int step = first_step + load;
    for (int thread = 0; thread < kBufferThreads; ++thread) {
      auto at = static_cast<size_t>(thread) * per_thread +
                static_cast<size_t>(load % tile.stages * tile.stage_vectors);
      for (int row = thread / tile.thread_chunks; row < tile.rows; row += tile.thread_rows) {
        for (int chunk = thread % tile.thread_chunks; chunk < tile.columns / 8;
             chunk += tile.thread_chunks, ++at) {
          const int in_tile = row + (tile.axis == 0 ? step * tile.rows : 0);
          const int column = chunk * 8 + (tile.axis == 1 ? step * tile.columns : 0);
          for (size_t i = 0; i < 4; ++i) words[4 * at + i] = 0;
          for (int i = 0; i < 8 && in_tile < num_b_rows; ++i) {
            words[4 * at + static_cast<size_t>(i * size / 4)] |=
                cache.bits(first_key + in_tile, column + i) << 8 * (i * size % 4);
          }
        }
      }
    }
  }
  return words;
}

template <class Buffer, int loads>
void expect_registers(const Tile& tile, const KVCacheCase& cache, int first_key, int num_b_rows,
                      int first_step = 0) {
  const LoadRun run = load<LoadKernel<Buffer, loads>>(cache, first_key, num_b_rows, first_step);
  EXPECT_EQ(run.words, expected_registers(tile, cache, first_key, num_b_rows, first_step, loads));
}

// The tiles as numbers: rows, columns, axis, threads, stages, vectors of a stage.
constexpr Tile kPrefillK{64, 32, 1, 32, 4, 1, 8}, kPrefillV{32, 128, 0, 32, 4, 1, 16};
constexpr Tile kTokenK{64, 32, 1, 32, 4, 1, 2}, kTokenV{32, 128, 0, 8, 16, 1, 4};
constexpr Tile with_stages(Tile tile, int stages) {
  tile.stages = stages;
  return tile;
}

TEST(LoadFromDram, a_thread_has_its_vectors_in_the_order_of_the_thread_layout) {
  const KVCacheCase cache({}, 64);
  expect_registers<PrefillK<BFloat16>, 1>(kPrefillK, cache, 0, 64);
  expect_registers<PrefillV<BFloat16>, 1>(kPrefillV, cache, 0, 64);
  expect_registers<TokenK<BFloat16>, 1>(kTokenK, cache, 0, 64);
  expect_registers<TokenV<BFloat16, 128>, 1>(kTokenV, cache, 0, 64);
  const KVCacheCase wide({.dim = 512}, 64);
  expect_registers<TokenV<BFloat16, 512, 16, 1, 1, 1>, 1>({16, 512, 0, 2, 64, 1, 16}, wide, 0, 64);
}

TEST(LoadFromDram, the_oracle_finds_a_wrong_element) {
  const KVCacheCase cache({}, 64);
  const LoadRun run = load<LoadKernel<PrefillK<BFloat16>, 1>>(cache, 0, 64);
  KVCacheCase other({}, 64);
  other.set(63, 31, other.at(63, 31) * 1.02F);  // 2 % in the last element of the block tile
  EXPECT_NE(run.words, expected_registers(kPrefillK, other, 0, 64, 0, 1));
  EXPECT_NE(run.words, expected_registers(kPrefillK, cache, 0, 63, 0, 1));  // a row less
  EXPECT_NE(run.words, expected_registers(kPrefillK, cache, 0, 64, 1, 1));  // another step
  EXPECT_NE(run.words, expected_registers(kTokenV, cache, 0, 64, 0, 1));    // another tile
}

TEST(LoadFromDram, k_iterates_along_axis_1_and_v_along_axis_0) {
  const KVCacheCase cache({}, 64);
  for (int step = 0; step < 4; ++step) {
    expect_registers<PrefillK<BFloat16>, 1>(kPrefillK, cache, 0, 64, step);
    expect_registers<TokenK<BFloat16>, 1>(kTokenK, cache, 0, 64, step);
  }
  for (int step = 0; step < 2; ++step) {
    expect_registers<PrefillV<BFloat16>, 1>(kPrefillV, cache, 0, 64, step);
    expect_registers<TokenV<BFloat16, 128>, 1>(kTokenV, cache, 0, 64, step);
  }
}

TEST(LoadFromDram, consecutive_calls_take_consecutive_block_tiles) {
  const KVCacheCase cache({}, 64);
  expect_registers<PrefillK<BFloat16>, 2>(kPrefillK, cache, 0, 64);
  expect_registers<PrefillK<BFloat16>, 4>(kPrefillK, cache, 0, 64);
  expect_registers<PrefillK<BFloat16>, 2>(kPrefillK, cache, 0, 64, 1);  // steps 1 and 2
  expect_registers<PrefillV<BFloat16>, 2>(kPrefillV, cache, 0, 64);
}

TEST(LoadFromDram, load_tile_id_cycles_over_the_stages) {
  const KVCacheCase cache({}, 64);
  EXPECT_EQ((load<LoadKernel<PrefillK<BFloat16, 1>, 4>>(cache, 0, 64).load_ids),
            (std::vector<int32_t>{0, 0, 0, 0, 0}));
  EXPECT_EQ((load<LoadKernel<PrefillK<BFloat16, 2>, 4>>(cache, 0, 64).load_ids),
            (std::vector<int32_t>{0, 1, 0, 1, 0}));
  EXPECT_EQ((load<LoadKernel<TokenK<BFloat16, 3>, 4>>(cache, 0, 64).load_ids),
            (std::vector<int32_t>{0, 1, 2, 0, 1}));
  // The other stage keeps what it has.
  const Tile k = with_stages(kPrefillK, 2), v = with_stages(kTokenV, 2);
  expect_registers<PrefillK<BFloat16, 2>, 1>(k, cache, 0, 64);
  expect_registers<PrefillK<BFloat16, 2>, 2>(k, cache, 0, 64);
  expect_registers<PrefillK<BFloat16, 2>, 3>(k, cache, 0, 64);
  expect_registers<TokenV<BFloat16, 128, 32, 2>, 2>(v, cache, 0, 64);
  expect_registers<TokenK<BFloat16, 3>, 4>(with_stages(kTokenK, 3), cache, 0, 64);
}

TEST(LoadFromDram, rows_past_the_bounds_are_zeros_and_not_read) {
  for (const int rows : {1, 31, 32, 33, 63}) {
    const KVCacheCase ends_there({}, rows), goes_on({}, 64);
    for (const KVCacheCase* cache : {&ends_there, &goes_on}) {
      expect_registers<PrefillK<BFloat16>, 4>(kPrefillK, *cache, 0, rows);
      expect_registers<PrefillV<BFloat16, 2>, 2>(with_stages(kPrefillV, 2), *cache, 0, rows);
      expect_registers<TokenK<BFloat16, 2>, 2>(with_stages(kTokenK, 2), *cache, 0, rows);
      expect_registers<TokenV<BFloat16, 128, 32, 2>, 2>(with_stages(kTokenV, 2), *cache, 0, rows);
    }
  }
}

TEST(LoadFromDram, columns_past_the_head_dim_are_zeros_and_not_read) {
  for (const int dim : {1, 8, 31, 33, 72, 120, 127}) {
    for (const int gap : {3, 16 - dim % 8}) {  // the second: aligned rows
      const KVCacheCase cache({.dim = dim, .row_gap = gap}, 64);
      expect_registers<PrefillK<BFloat16, 2>, 2>(with_stages(kPrefillK, 2), cache, 0, 64);
      expect_registers<PrefillK<BFloat16, 2>, 2>(with_stages(kPrefillK, 2), cache, 0, 64, 2);
      expect_registers<TokenV<BFloat16, 128, 32, 2>, 2>(with_stages(kTokenV, 2), cache, 0, 64);
    }
  }
}

TEST(LoadFromDram, a_read_past_a_row_would_be_reported) {
  const KVCacheCase cache({.dim = 120, .row_gap = 8}, 63);
  using Kernel = LoadKernel<PrefillK<BFloat16>, 4>;
  std::vector<uint32_t> words(4UL * Kernel::kThreads * Kernel::kVectors);
  std::vector<int32_t> ids(5);
  const auto is_clean = [&](int dim, int num_b_rows) {
    KVSource source = cache.source();
    source.dim = dim;
    return emulator::launch<Kernel>(
               emulator::shape_of<Kernel>("load", {1}),
               {source, cache.keys(), 0, num_b_rows, 0,
                reinterpret_cast<arch::Words<4>*>(words.data()), ids.data()},
               cache.buffers({emulator::output("out", words.data(), words.size()),
                              emulator::output("ids", ids.data(), ids.size())}))
        .is_clean();
  };
  EXPECT_TRUE(is_clean(120, 63));
  EXPECT_FALSE(is_clean(121, 63));
  EXPECT_FALSE(is_clean(120, 64));
}

TEST(LoadFromDram, spare_threads_of_a_small_tile_load_nothing) {
  // 16 x 32: 64 vectors, 128 threads.
  using Small = KVBufferImpl<KVBufferConfig::k(16, 16, 32), Core<BFloat16, 2, true>,
                             row_major_swizzle(4), 16, 16, 32, 128, kBufferThreads, 1, true>;
  const KVCacheCase cache({}, 16);
  const LoadRun run = load<LoadKernel<Small, 1>>(cache, 0, 16);
  std::vector<uint32_t> expected = expected_registers({16, 32, 1, 16, 4, 1, 2}, cache, 0, 16, 0, 1);
  // The registers of the other half are zeros: no row exists for them.
  for (size_t thread = 64; thread < 128; ++thread) {
    for (size_t i = 0; i < 4; ++i) expected[thread * 2 * 4 + i] = 0;
  }
  EXPECT_EQ(run.words, expected);
}

TEST(LoadFromDram, registers_hold_the_8_bytes_of_a_vector_of_e4m3) {
  const KVCacheCase cache({.dtype = DType::kF8E4M3}, 64);
  expect_registers<PrefillK<BFloat16, 2>, 2>(with_stages(kPrefillK, 2), cache, 0, 64);
  expect_registers<TokenV<BFloat16, 128>, 1>(kTokenV, cache, 0, 40, 1);
}

}  // namespace
}  // namespace pagoda::operand
