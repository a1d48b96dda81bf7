// TransposedKVBuffer: which elements a thread loads, where they are in shared memory, the
// fragments that lanes read there, and the banks of all that.
#include "operand/transposed_kv_buffer.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "testing/material/kv_copies.hpp"
#include "testing/material/kv_fragments.hpp"
#include "testing/material/kv_loads.hpp"
#include "testing/material/lds_banks.hpp"
#include "testing/material/mfma_buffers.hpp"

namespace pagoda::operand {
namespace {

using namespace material;
using arch::BFloat16;
using arch::Half;

constexpr Elements kVectors = Elements::kVectors;

// --- sizes -------------------------------------------------------------------------------------

TEST(TransposedKVBuffer, is_a_kv_buffer) {
  static_assert(KVBuffer<MfmaPrefillV<BFloat16>>);
  static_assert(KVBuffer<MfmaPrefillV<Half, 256, 16, 2, 2, kVectors>>);
}

TEST(TransposedKVBuffer, sizes_are_those_of_v) {
  using V = MfmaPrefillV<BFloat16, 128, 32, 2, 2>;
  EXPECT_EQ(V::num_mmas, 4);     // 128 columns, 32 an instruction
  EXPECT_EQ(V::num_k_tiles, 2);  // 32 keys, 16 a k-group
  EXPECT_EQ(V::num_warps_n, 1);
  EXPECT_EQ(V::stage_vectors, 8);
  EXPECT_EQ(sizeof(V::LoadTile), 2 * 8 * 16UL);
  EXPECT_EQ(sizeof(V::MMATile), 4 * 16UL);
  EXPECT_EQ(V::smem_layout.size(), 32 * 128 / 8);
  EXPECT_EQ(V::pair_steps, 1);  // 16 pairs of rows of 16 chunks, 256 threads
  EXPECT_EQ((MfmaPrefillV<BFloat16, 256>::pair_steps), 2);
  EXPECT_EQ((MfmaPrefillV<BFloat16, 192>::pair_steps), 2);  // one and a half
}

// --- load_from_dram ----------------------------------------------------------------------------

struct Pair {
  int row, chunk;  // and row + 8
};
// Pair `i` of a thread of 256: 64 threads have 8 neighbouring chunks of the first 8 rows of 16; the
// next 64 have the next 8 chunks of them.
Pair pair_of(int depth, int thread, int i) {
  const int index = thread + 256 * i, chunks = depth / 8;
  const int eights = index / 64;  // of chunks
  return {eights / (chunks / 8) * 16 + index % 64 / 8, eights % (chunks / 8) * 8 + index % 8};
}

template <class Buffer>
std::vector<uint32_t> expected_registers(const KVCacheCase& cache, int num_b_rows, int loads) {
  constexpr int stages = kNumStages<Buffer>, depth = Buffer::config.btile_dim1;
  std::vector<uint32_t> words(4UL * 256 * stages * Buffer::stage_vectors, kUnloaded);
  const int size = static_cast<int>(size_bytes(cache.format().dtype));
  for (int load = 0; load < loads; ++load) {
    for (int thread = 0; thread < 256; ++thread) {
      for (int vector = 0; vector < 2 * Buffer::pair_steps; ++vector) {
        const auto [row, chunk] = pair_of(depth, thread, vector / 2);
        const int key = load * Buffer::BK + row + vector % 2 * 8;
        const auto at =
            static_cast<size_t>((thread * stages + load % stages) * Buffer::stage_vectors + vector);
        for (size_t i = 0; i < 4; ++i) words[4 * at + i] = 0;
        for (int e = 0; e < 8 && row < Buffer::BK && key < num_b_rows; ++e) {
          words[4 * at + static_cast<size_t>(e * size / 4)] |= cache.bits(key, chunk * 8 + e)
                                                               << 8 * (e * size % 4);
        }
      }
    }
  }
  return words;
}
template <class Buffer, int loads>
void expect_loads(const KVCacheCase& cache, int num_b_rows = 64) {
  EXPECT_EQ((load<LoadKernel<Buffer, loads>>(cache, 0, num_b_rows).words),
            expected_registers<Buffer>(cache, num_b_rows, loads))
      << cache.format().name() << ", rows " << num_b_rows;
}

TEST(TransposedLoad, a_thread_has_rows_r_and_r_plus_8_of_its_chunk) {
  const KVCacheCase d64({.dim = 64}, 64), d128({}, 64), d192({.dim = 192}, 64);
  const KVCacheCase d256({.dim = 256}, 64);
  expect_loads<MfmaPrefillV<BFloat16, 64>, 1>(d64);
  expect_loads<MfmaPrefillV<BFloat16, 128>, 1>(d128);
  expect_loads<MfmaPrefillV<BFloat16, 192>, 1>(d192);
  expect_loads<MfmaPrefillV<BFloat16, 256>, 1>(d256);
  expect_loads<MfmaPrefillV<BFloat16, 64, 16>, 1>(d64);  // a quarter of the threads
  expect_loads<MfmaPrefillV<BFloat16, 256, 16>, 1>(d256);
}

TEST(TransposedLoad, load_tile_id_cycles_over_the_stages) {
  const KVCacheCase cache({}, 64);
  EXPECT_EQ((load<LoadKernel<MfmaPrefillV<BFloat16, 128, 16>, 4>>(cache, 0, 64).load_ids),
            (std::vector<int32_t>{0, 0, 0, 0, 0}));
  EXPECT_EQ((load<LoadKernel<MfmaPrefillV<BFloat16, 128, 16, 2>, 4>>(cache, 0, 64).load_ids),
            (std::vector<int32_t>{0, 1, 0, 1, 0}));
  // The other stage keeps what it has.
  expect_loads<MfmaPrefillV<BFloat16, 128, 16, 2>, 1>(cache);
  expect_loads<MfmaPrefillV<BFloat16, 128, 16, 2>, 2>(cache);
  expect_loads<MfmaPrefillV<BFloat16, 128, 16, 2>, 3>(cache);
}

TEST(TransposedLoad, rows_past_the_bounds_are_zeros_and_not_read) {
  for (const int rows : {1, 8, 9, 31, 33, 63}) {
    const KVCacheCase ends_there({}, rows), goes_on({}, 64);
    for (const KVCacheCase* cache : {&ends_there, &goes_on}) {
      expect_loads<MfmaPrefillV<BFloat16, 128, 32, 2>, 2>(*cache, rows);
      expect_loads<MfmaPrefillV<BFloat16, 128, 16, 1, 1, kVectors>, 2>(*cache, rows);
    }
  }
}

TEST(TransposedLoad, columns_past_the_head_dim_are_zeros_and_not_read) {
  for (const int dim : {1, 33, 72, 127}) {
    for (const int gap : {3, 16 - dim % 8}) {  // the second: aligned rows
      expect_loads<MfmaPrefillV<BFloat16>, 2>(KVCacheCase({.dim = dim, .row_gap = gap}, 64));
    }
  }
  for (const int dim : {8, 120}) {
    expect_loads<MfmaPrefillV<BFloat16, 128, 32, 1, 1, kVectors>, 2>(
        KVCacheCase({.dim = dim, .row_gap = 8}, 64));
  }
}

TEST(TransposedLoad, registers_hold_the_8_bytes_of_a_vector_of_e4m3) {
  expect_loads<MfmaPrefillV<BFloat16>, 2>(KVCacheCase({.dtype = DType::kF8E4M3}, 64), 40);
}

// --- copy_to_shared ----------------------------------------------------------------------------

TEST(TransposedLayout, keys_are_in_the_order_0_8_1_9) {
  const std::array<int, 16> order{0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15};
  for (size_t i = 0; i < 16; ++i) {
    EXPECT_EQ(interleaved_key(order[i]), static_cast<int>(i));
  }
}

TEST(TransposedLayout, vectors_are_blocks_of_columns_with_an_xor) {
  constexpr TransposedLayout layout{32, 128};
  EXPECT_EQ(layout.size(), 512);
  for (int block = 0; block < 4; ++block) {
    EXPECT_EQ(layout.index(block, 0), block * 128);
    EXPECT_EQ(layout.index(block, 7), block * 128 + 7);
    EXPECT_EQ(layout.index(block, 8), block * 128 + 9);    // 8 + (0 ^ 1)
    EXPECT_EQ(layout.index(block, 10), block * 128 + 11);  // 8 + (2 ^ 1)
    EXPECT_EQ(layout.index(block, 59), block * 128 + 60);  // 56 + (3 ^ 7)
    EXPECT_EQ(layout.index(block, 67), block * 128 + 67);  // 64 + (3 ^ 0)
  }
  std::set<int> places;
  for (int block = 0; block < 4; ++block) {
    for (int column = 0; column < 128; ++column) places.insert(layout.index(block, column));
  }
  EXPECT_EQ(places.size(), 512U);
  EXPECT_EQ(*places.rbegin(), 511);
}

template <int depth>
void expect_copies_of_depth() {
  for (const int rows : {64, 47}) {
    const KVCacheCase cache({.dim = depth}, rows);
    EXPECT_EQ((wrong_copies<MfmaPrefillV<BFloat16, depth, 32>, 1>(cache, 0, rows)), "");
    EXPECT_EQ((wrong_copies<MfmaPrefillV<BFloat16, depth, 32, 2, 2>, 2>(cache, 0, rows)), "");
    EXPECT_EQ((wrong_copies<MfmaPrefillV<BFloat16, depth, 16, 1, 4>, 4>(cache, 0, rows)), "");
    EXPECT_EQ((wrong_copies<MfmaPrefillV<BFloat16, depth, 16, 2, 4, kVectors>, 4>(cache, 0, rows)),
              "");
  }
}

TEST(TransposedCopy, every_depth_is_complete) {
  expect_copies_of_depth<64>();
  expect_copies_of_depth<128>();
  expect_copies_of_depth<192>();
  expect_copies_of_depth<256>();
}

TEST(TransposedCopy, copies_stage_tile_id) {
  const KVCacheCase cache({}, 64);
  // The other stage: the first two block tiles change places.
  using Right = CopyKernel<MfmaPrefillV<BFloat16, 128, 32, 2, 2>, 2>;
  using Wrong = CopyKernel<MfmaPrefillV<BFloat16, 128, 32, 2, 2>, 2, 1>;
  const std::vector<uint16_t> expected = expected_tiles<Right>(cache, 0, 64);
  std::vector<uint16_t> wrong = copied_tiles<Wrong>(cache, 0, 64);
  ASSERT_EQ(wrong.size(), expected.size());
  EXPECT_NE(wrong, expected);
  std::rotate(wrong.begin(), wrong.begin() + Wrong::kTile, wrong.end());
  EXPECT_EQ(wrong, expected);
}

TEST(TransposedCopy, tiles_are_circular) {
  const KVCacheCase cache({}, 64);  // the fourth takes the first's place
  EXPECT_EQ((wrong_copies<MfmaPrefillV<BFloat16, 128, 16, 1, 3>, 4>(cache, 0, 64)), "");
  EXPECT_EQ((wrong_copies<MfmaPrefillV<BFloat16, 128, 16, 2, 2>, 4>(cache, 0, 64)), "");
  EXPECT_EQ((wrong_copies<MfmaPrefillV<BFloat16, 128, 16, 1, 1>, 3>(cache, 0, 64)), "");
}

// Complete tiles and incomplete ones, from key 0 and from keys inside of a page.
template <class V>
void expect_all_tiles(CacheFormat format) {
  for (const auto& [first_key, rows] : {std::pair{0, 64}, {37, 64}, {64, 17}, {95, 33}}) {
    const KVCacheCase cache(format, first_key + rows, static_cast<uint32_t>(first_key + rows));
    EXPECT_EQ((wrong_copies<V, 2>(cache, first_key, rows)), "");
  }
}

TEST(TransposedCopy, caches_of_every_layout) {
  using V = MfmaPrefillV<BFloat16, 128, 32, 2, 2>;
  using Vectors = MfmaPrefillV<BFloat16, 128, 32, 1, 2, kVectors>;
  expect_all_tiles<V>({.kind = KeyRowsKind::kRagged});
  for (const int size : {1, 3, 16, 48, 64, 128}) {
    expect_all_tiles<V>({.kind = KeyRowsKind::kPaged, .page_size = size});
    expect_all_tiles<Vectors>({.kind = KeyRowsKind::kPaged, .page_size = size, .is_csr = true});
  }
  expect_all_tiles<V>({.dim = 101, .row_gap = 2, .first = 1});
}

TEST(TransposedCopy, f16_and_e4m3) {
  using V16 = MfmaPrefillV<Half, 128, 32, 2, 2>;
  using V = MfmaPrefillV<BFloat16, 128, 32, 1, 2>;
  expect_all_tiles<V16>({.dtype = DType::kF16});
  expect_all_tiles<V16>({.dtype = DType::kF8E4M3, .dim = 88});
  expect_all_tiles<V>({.kind = KeyRowsKind::kPaged,
                       .page_size = 3,
                       .dtype = DType::kF8E4M3,
                       .dim = 127,
                       .row_gap = 2,
                       .first = 1});
}

TEST(TransposedCopy, the_oracle_finds_a_wrong_element) {
  using Kernel = CopyKernel<MfmaPrefillV<BFloat16, 128, 32, 1, 2>, 2>;
  KVCacheCase cache({}, 64);
  const std::vector<uint16_t> tiles = copied_tiles<Kernel>(cache, 0, 64);
  EXPECT_EQ(tiles, expected_tiles<Kernel>(cache, 0, 64));
  EXPECT_NE(tiles, expected_tiles<Kernel>(cache, 0, 63));  // a row less
  cache.set(63, 127, cache.at(63, 127) * 1.02F);
  EXPECT_NE(tiles, expected_tiles<Kernel>(cache, 0, 64));
}

// --- load_from_shared --------------------------------------------------------------------------

TEST(TransposedFragments, a_lane_has_8_keys_of_its_column) {
  EXPECT_EQ((wrong_fragments_by_parts<MfmaPrefillV<BFloat16, 64>, 64, 2>()), "");
  EXPECT_EQ((wrong_fragments_by_parts<MfmaPrefillV<BFloat16, 128>, 128, 4>()), "");
  EXPECT_EQ((wrong_fragments_by_parts<MfmaPrefillV<BFloat16, 192>, 192, 6>()), "");
  EXPECT_EQ((wrong_fragments_by_parts<MfmaPrefillV<Half, 256>, 256, 8>()), "");
  EXPECT_EQ((wrong_fragments_by_parts<MfmaPrefillV<BFloat16, 128, 16>, 128, 4>()), "");
}

TEST(TransposedFragments, parts_stages_and_tiles_change_nothing) {
  EXPECT_EQ((wrong_fragments_by_parts<MfmaPrefillV<BFloat16, 128>, 128, 1, 2, 3>()), "");
  EXPECT_EQ((wrong_fragments_by_parts<MfmaPrefillV<BFloat16, 256, 16, 2, 2>, 256, 3, 8>()), "");
  EXPECT_EQ((wrong_fragments_by_parts<MfmaPrefillV<BFloat16, 128, 32, 2, 2>, 128, 4>(37)), "");
  const KVCacheCase cache({}, 64);  // 1 + 2 + 1
  EXPECT_EQ((wrong_fragments<FragmentKernel<MfmaPrefillV<BFloat16>, 2, 2, 1>>(cache)), "");
}

TEST(TransposedFragments, waves_may_share_the_columns) {  // warp_n 0 and 1
  using V = TransposedKVBuffer<KVBufferConfig::v(64, 32, 32, 128), MfmaCore<BFloat16, 32, 2, false>,
                               64, 32, 32, 128, kMfmaThreads>;
  EXPECT_EQ((wrong_fragments_by_parts<V, 128, 2, 1>()), "");
}

// --- banks -------------------------------------------------------------------------------------

// Reads of 16 bytes: lane l has column l % 32 of its column tile and block l / 32 of a k-group.
int worst_read(const TransposedLayout& layout) {
  int worst = 0;
  for (int block = 0; block < layout.keys / 8; block += 2) {
    for (int column = 0; column < layout.columns; column += 32) {
      OfLanes vectors{};
      for (size_t lane = 0; lane < 64; ++lane) {
        const int l = static_cast<int>(lane);
        vectors[lane] = layout.index(block + l / 32, column + l % 32);
      }
      worst = std::max(worst, read_conflicts(vectors));
    }
  }
  return worst;
}
// Stores of 4 bytes: word key % 4 of the vector of each column in turn, by the threads that have
// its pairs.
int worst_store(const TransposedLayout& layout) {
  int worst = 0;
  for (int first = 0; first < layout.keys / 2 * (layout.columns / 8); first += 64) {
    for (int e = 0; e < 8; ++e) {
      OfLanes words{};
      for (size_t lane = 0; lane < 64; ++lane) {
        const auto [row, chunk] = pair_of(layout.columns, first + static_cast<int>(lane), 0);
        const int vector = layout.index(row / 16 * 2 + row % 16 / 4, chunk * 8 + e);
        words[lane] = vector * 4 + row % 4;
      }
      worst = std::max(worst, write_conflicts(words));
    }
  }
  return worst;
}

TEST(TransposedBanks, reads_of_16_bytes_have_no_conflict) {
  for (const int depth : {64, 128, 192, 256}) {
    EXPECT_EQ(worst_read({16, depth}), 1) << depth;
    EXPECT_EQ(worst_read({32, depth}), 1) << depth;
  }
}

TEST(TransposedBanks, stores_of_32_lanes_cover_the_banks) {
  for (const int depth : {64, 128, 192, 256}) {
    EXPECT_EQ(worst_store({16, depth}), 1) << depth;
    EXPECT_EQ(worst_store({32, depth}), 1) << depth;
  }
}

TEST(TransposedBanks, a_layout_without_the_xor_conflicts) {
  OfLanes words{};
  for (size_t lane = 0; lane < 64; ++lane) {
    const auto [row, chunk] = pair_of(64, static_cast<int>(lane), 0);
    words[lane] = (row / 4 * 64 + chunk * 8) * 4 + row % 4;
  }
  EXPECT_EQ(write_conflicts(words), 8);
  // A vector of padding after each 8: lanes 0 .. 3 and 20 .. 23 share banks.
  OfLanes padded{};
  for (size_t lane = 0; lane < 64; ++lane) {
    const int column = static_cast<int>(lane % 32);
    padded[lane] = static_cast<int>(lane / 32) * 72 + column + column / 8;
  }
  EXPECT_GT(read_conflicts(padded), 1);
}

}  // namespace
}  // namespace pagoda::operand
