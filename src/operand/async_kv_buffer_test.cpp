// AsyncKVBuffer: the same fragments as KVBufferImpl, both through the concept, with several tiles
// in flight, in every order in which copies may complete.
#include "operand/async_kv_buffer.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "testing/material/kv_fragments.hpp"

namespace pagoda::operand {
namespace {

using namespace material;
using arch::BFloat16;
using arch::Half;

template <class Kernel>
std::vector<uint32_t> run(const KVCacheCase& cache, int first_key, int rows,
                          emulator::Options options = {}) {
  std::string reports;
  std::vector<uint32_t> words = fragments<Kernel>(cache, first_key, rows, options, reports);
  EXPECT_EQ(reports, "") << cache.format().name();
  return words;
}
// The fragments of both classes, which divide the elements into equal steps, and of the oracle.
template <class Async, class Impl, int steps>
void expect_equal(const KVCacheCase& cache, int first_key, int rows) {
  const auto expected = expected_fragments<FragmentKernel<Async, steps>>(cache, first_key, rows);
  ASSERT_EQ((run<FragmentKernel<Impl, steps>>(cache, first_key, rows)), expected)
      << cache.format().name();
  for (const emulator::Mode mode : emulator::kModes) {
    ASSERT_EQ((run<FragmentKernel<Async, steps>>(cache, first_key, rows, {.mode = mode})), expected)
        << cache.format().name() << ", " << emulator::name(mode);
  }
}

// KVBufferImpl with steps of 64 elements or keys, as cp.async has them.
template <class T, int WN, bool token_gen = WN != kBN>
using ImplK = KVBufferImpl<KVBufferConfig::k(kBN, WN, 64), Core<T, 2, true>,
                           token_gen ? row_major_swizzle(8) : blocked_swizzle(kBN), kBN, WN, 64,
                           128, kBufferThreads, 1, token_gen, 1>;
template <class T, int WN, int BK, bool token_gen = WN != kBN>
using ImplV = KVBufferImpl<KVBufferConfig::v(kBN, WN, BK, 128), Core<T, 2, false>,
                           token_gen ? row_major_swizzle(16) : blocked_swizzle(BK), kBN, WN, BK,
                           128, kBufferThreads, 1, token_gen, 1>;

TEST(AsyncKVBuffer, has_the_fragments_of_kv_buffer_impl) {
  const KVCacheCase cache({}, 64);
  expect_equal<AsyncK<BFloat16, 64, 64, 2>, ImplK<BFloat16, 64>, 2>(cache, 0, 64);
  expect_equal<AsyncK<BFloat16, 16, 64, 2>, ImplK<BFloat16, 16>, 2>(cache, 0, 64);
  expect_equal<AsyncV<BFloat16, 64, 32, 128, 2>, ImplV<BFloat16, 64, 32>, 2>(cache, 0, 64);
  expect_equal<AsyncV<BFloat16, 16, 32, 128, 2>, ImplV<BFloat16, 16, 32>, 2>(cache, 0, 64);
  const KVCacheCase half({.dtype = DType::kF16}, 64);
  expect_equal<AsyncK<Half, 64, 64, 2>, ImplK<Half, 64>, 2>(half, 0, 64);
}

TEST(AsyncKVBuffer, several_tiles_are_in_flight) {
  const KVCacheCase cache({}, 64);
  expect_equal<AsyncK<BFloat16, 64, 64, 3>, ImplK<BFloat16, 64>, 2>(cache, 0, 64);
  expect_equal<AsyncV<BFloat16, 64, 16, 128, 3, 1>,
               KVBufferImpl<KVBufferConfig::v(64, 64, 16, 128), Core<BFloat16, 1, false>,
                            blocked_swizzle(16), 64, 64, 16, 128, kBufferThreads>,
               4>(cache, 0, 64);  // the fourth step takes the first's tile
  expect_equal<AsyncV<BFloat16, 16, 16, 128, 4, 1>,
               KVBufferImpl<KVBufferConfig::v(64, 16, 16, 128), Core<BFloat16, 1, false>,
                            row_major_swizzle(16), 64, 16, 16, 128, kBufferThreads, 1, true>,
               4>(cache, 0, 64);
  const KVCacheCase wide({.dim = 256}, 64);
  expect_equal<AsyncK<BFloat16, 16, 64, 3>, ImplK<BFloat16, 16>, 4>(wide, 0, 64);
}

TEST(AsyncKVBuffer, rows_and_columns_that_do_not_exist_are_zeros_and_not_read) {
  for (const int rows : {1, 17, 63}) {
    for (const int dim : {8, 72, 120}) {
      const KVCacheCase cache({.dim = dim, .row_gap = 8}, rows);
      expect_equal<AsyncK<BFloat16, 64, 64, 2>, ImplK<BFloat16, 64>, 2>(cache, 0, rows);
      expect_equal<AsyncV<BFloat16, 16, 32, 128, 2>, ImplV<BFloat16, 16, 32>, 2>(cache, 0, rows);
    }
  }
  // A head dim that is no multiple of 8: the last copy is shorter.
  const KVCacheCase odd({.dim = 99, .row_gap = 5}, 64);
  expect_equal<AsyncK<BFloat16, 16, 64, 2>, ImplK<BFloat16, 16>, 2>(odd, 0, 64);
}

// `Base`, whose loads are those of a tile with all elements of its first rows: load_whole, or
// load_pages with a look-up for every rows of a thread_layout.
template <class Base, bool by_pages>
struct FirstRows : Base {
  using Base::Base;
  PAGODA_DEVICE void begin(const KVTile<kBN>& tile, int32_t rows, int32_t step = 0) {
    source = tile;
    num_rows = rows;
    next_step = step;
  }
  PAGODA_DEVICE void load_from_dram() {
    const auto row_bytes = static_cast<int32_t>(source.source.row_bytes);
    if constexpr (by_pages) {
      this->template load_pages<false>(
          [this](int row) {
            EXPECT_LT(row, num_rows);  // the others may have no page
            return source.row(row);
          },
          row_bytes, next_step++, num_rows);
    } else {
      this->template load_whole<false>(source.row(0), row_bytes, next_step++, num_rows);
    }
  }
  KVTile<kBN> source;
  int32_t num_rows = 0, next_step = 0;
};

TEST(AsyncKVBuffer, a_tile_in_which_the_sequence_ends_has_zeros_past_its_rows) {
  using K = AsyncK<BFloat16, 16, 64, 2>;
  using V = AsyncV<BFloat16, 16, 32, 128, 2>;
  for (const int rows : {1, 15, 16, 17, 33, 63, 64}) {
    const KVCacheCase dense({}, rows);  // reports a read past its end
    expect_equal<FirstRows<K, false>, ImplK<BFloat16, 16>, 2>(dense, 0, rows);
    expect_equal<FirstRows<V, false>, ImplV<BFloat16, 16, 32>, 2>(dense, 0, rows);
    const KVCacheCase paged({.kind = KeyRowsKind::kPaged, .page_size = 16}, rows);
    expect_equal<FirstRows<K, true>, ImplK<BFloat16, 16>, 2>(paged, 0, rows);
    expect_equal<FirstRows<V, true>, ImplV<BFloat16, 16, 32>, 2>(paged, 0, rows);
  }
}

TEST(AsyncKVBuffer, serves_caches_of_every_layout) {
  std::vector<CacheFormat> formats{{}, {.kind = KeyRowsKind::kRagged}};
  for (const int size : {1, 3, 16, 48, 64, 128}) {
    for (const bool is_csr : {false, true}) {
      formats.push_back({.kind = KeyRowsKind::kPaged, .page_size = size, .is_csr = is_csr});
    }
  }
  for (const CacheFormat& format : formats) {
    for (const int first_key : {0, 64, 37}) {
      const KVCacheCase cache(format, first_key + 50);
      using K = FragmentKernel<AsyncK<BFloat16, 16, 64, 3>, 2>;
      using V = FragmentKernel<AsyncV<BFloat16, 64, 32, 128, 2>, 2>;
      ASSERT_EQ((run<K>(cache, first_key, 50)), (expected_fragments<K>(cache, first_key, 50)))
          << format.name();
      ASSERT_EQ((run<V>(cache, first_key, 50)), (expected_fragments<V>(cache, first_key, 50)))
          << format.name();
    }
  }
}

TEST(AsyncKVBuffer, a_tile_that_is_not_complete_is_noticed) {
  // cp_async_wait for one group less: the last step's copies are still in flight.
  struct TooEarly : FragmentKernel<AsyncK<BFloat16, 64, 64, 2>, 2> {
    static PAGODA_DEVICE void run(const Params& params) {
      auto& storage = arch::shared_storage<Storage>();
      Buffer buffer(storage.tiles.data(), 0);
      buffer.begin({params.source, params.keys, KVCacheCase::kSequence, 0}, 64);
      buffer.load_from_dram();
      arch::cp_async_commit();
      arch::cp_async_wait<1>();
      arch::syncthreads();
      buffer.template load_from_shared<0>();
      arch::cp_async_wait<0>();
    }
  };
  std::string reports;
  (void)fragments<TooEarly>(KVCacheCase({}, 64), 0, 64, {.mode = emulator::Mode::kLazy}, reports);
  EXPECT_NE(reports, "");
}

}  // namespace
}  // namespace pagoda::operand
