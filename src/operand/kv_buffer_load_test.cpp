// KVBufferImpl::load_from_dram: which elements the registers of a thread hold, in which stage. What
// must not be read holds NaN and is outside of every buffer of the launch.
#include <cstdint>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "operand/kv_buffer.hpp"
#include "testing/material/kv_loads.hpp"
#include "testing/material/mfma_buffers.hpp"

namespace pagoda::operand {
namespace {

using namespace material;
using arch::BFloat16;
using arch::Half;

// The registers after `loads` loads. Thread t of `threads` has row t / chunks and chunk t % chunks
// of the thread layout, which moves over the rows and, inside, over the chunks of the block tile.
struct Tile {
  int rows, columns, axis;  // block tile; axis 0: the next tile is below, 1: to the right
  int thread_rows, thread_chunks;
  int stages, stage_vectors;
  int threads = kBufferThreads;
};
std::vector<uint32_t> expected_registers(const Tile& tile, const KVCacheCase& cache, int first_key,
                                         int num_b_rows, int first_step, int loads) {
  const auto per_thread = static_cast<size_t>(tile.stages * tile.stage_vectors);
  std::vector<uint32_t> words(4 * static_cast<size_t>(tile.threads) * per_thread, kUnloaded);
  const int size = static_cast<int>(size_bytes(cache.format().dtype));
  for (int load = 0; load < loads; ++load) {
    const int step = first_step + load;
    for (int thread = 0; thread < tile.threads; ++thread) {
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

// --- waves of 64 lanes, kVectors ---------------------------------------------------------------

constexpr Elements kVectors = Elements::kVectors;
// 256 threads: a vector of K each, and of V of token generation with 128 columns two.
constexpr Tile kMfmaK{64, 32, 1, 64, 4, 1, 4, 256}, kMfmaTokenK{64, 32, 1, 64, 4, 1, 1, 256};
constexpr Tile kMfmaTokenV{32, 128, 0, 16, 16, 1, 2, 256};

TEST(LoadFromDram, waves_of_64_lanes_load_vectors) {
  const KVCacheCase cache({}, 64), f16({.dtype = DType::kF16, .row_gap = 8}, 64);
  expect_registers<MfmaPrefillK<BFloat16, 1, 1, kVectors>, 1>(kMfmaK, cache, 0, 64, 3);
  expect_registers<MfmaTokenK<BFloat16, 1, 1, kVectors>, 1>(kMfmaTokenK, cache, 0, 64, 1);
  expect_registers<MfmaTokenV<BFloat16, 128, 32, 1, 1, kVectors>, 1>(kMfmaTokenV, cache, 0, 64, 1);
  expect_registers<MfmaTokenV<Half, 128, 32, 1, 1, kVectors>, 1>(kMfmaTokenV, f16, 0, 64);
  expect_registers<MfmaPrefillK<BFloat16, 2, 1, kVectors>, 3>(with_stages(kMfmaK, 2), cache, 0, 64);
  // Rows that follow each other in pages of 64, and that do not.
  for (const int size : {3, 64}) {
    const KVCacheCase paged({.kind = KeyRowsKind::kPaged, .page_size = size}, 101);
    expect_registers<MfmaPrefillK<BFloat16, 1, 1, kVectors>, 1>(kMfmaK, paged, 64, 37, 2);
    expect_registers<MfmaTokenV<BFloat16, 128, 32, 1, 1, kVectors>, 1>(kMfmaTokenV, paged, 37, 64);
  }
}

TEST(LoadFromDram, vectors_end_at_the_bounds_and_at_the_head_dim) {
  for (const int rows : {1, 33, 63}) {
    for (const int dim : {8, 72, 120}) {
      const KVCacheCase cache({.dim = dim, .row_gap = 8}, rows);
      for (const int step : {0, 2, 3}) {
        expect_registers<MfmaPrefillK<BFloat16, 1, 1, kVectors>, 1>(kMfmaK, cache, 0, rows, step);
      }
      expect_registers<MfmaTokenV<BFloat16, 128, 32, 1, 1, kVectors>, 2>(kMfmaTokenV, cache, 0,
                                                                         rows);
    }
  }
}

TEST(LoadFromDram, vectors_are_loaded_whole_from_aligned_rows_alone) {
  const KVCacheCase shifted({.dim = 128, .row_gap = 8, .first = 4}, 64);
  const auto reports = [&](auto buffer) -> std::string {
    using Kernel = LoadKernel<typename decltype(buffer)::type, 1>;
    try {
      load<Kernel>(shifted, 0, 64);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(reports(std::type_identity<MfmaTokenK<BFloat16, 1, 1, kVectors>>())
                .find("not aligned to 16 bytes"),
            std::string::npos);
  EXPECT_EQ(reports(std::type_identity<MfmaTokenK<BFloat16>>()), "");
}

}  // namespace
}  // namespace pagoda::operand
