// RowLoader for vectors: rows through a buffer resource, and strides that a buffer can't serve.
#include "operand/buffer_row_loader.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "arch/thread.hpp"
#include "emulator/machine/launch.hpp"
#include "testing/material/expect_report.hpp"
#include "testing/material/kv_buffers.hpp"
#include "testing/material/kv_cache_case.hpp"

namespace pagoda::operand {
namespace {

using namespace material;

constexpr int kTileRows = 64, kExisting = 40, kDim = 64;

// Lane r of a wave loads the first eight elements of row r.
struct RowKernel {
  using Loader = RowLoader<arch::BFloat16, kTileRows, Elements::kVectors>;
  struct Params {
    KVSource source;
    KeyRows keys;
    arch::GlobalPtr<arch::Words<4>> out;  // [64]
  };
  struct Storage {};
  static constexpr int kThreads = 64, kWarpSize = 64;

  static PAGODA_DEVICE void run(const Params& params) {
    const KVTile<kTileRows> tile{params.source, params.keys, KVCacheCase::kSequence, 0};
    const int lane = arch::lane_idx();
    Loader loader;
    loader.begin(tile, kExisting);
    loader.choose([&](auto rows) {
      const auto row = loader.row(rows, tile, kExisting, lane, true);
      arch::store(params.out + lane, loader.load(rows, tile, row, 0));
    });
  }
};

// Rows of the tile are rows first, first + step, ... of the cache.
void expect_rows(int first, int step) {
  const KVCacheCase cache({.dim = kDim}, kTileRows);
  KVSource source = cache.source();
  source.data = source.data + first * source.row_bytes;
  source.row_bytes *= step;
  std::vector<uint32_t> words(64UL * 4, 1);
  const emulator::Result result = emulator::launch<RowKernel>(
      emulator::shape_of<RowKernel>("rows", {1}),
      {source, cache.keys(), reinterpret_cast<arch::Words<4>*>(words.data())},
      cache.buffers({emulator::output("out", words.data(), words.size())}));
  EXPECT_EQ(emulator::all_reports(result), "");
  for (int row = 0; row < kTileRows; ++row) {
    for (int word = 0; word < 4; ++word) {
      const uint32_t expected = row < kExisting
                                    ? cache.bits(first + row * step, 2 * word) |
                                          cache.bits(first + row * step, 2 * word + 1) << 16U
                                    : 0;
      EXPECT_EQ(words[static_cast<size_t>(4 * row + word)], expected) << row << ", " << step;
    }
  }
}

TEST(BufferRowLoader, rows_that_follow_each_other_are_read_and_the_others_are_zeros) {
  expect_rows(0, 1);
}
TEST(BufferRowLoader, rows_in_reverse_are_read) { expect_rows(kTileRows - 1, -1); }
TEST(BufferRowLoader, one_row_for_all_keys_is_read) { expect_rows(7, 0); }

}  // namespace
}  // namespace pagoda::operand
