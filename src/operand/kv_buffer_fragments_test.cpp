// KVBufferBase::load_from_shared, of both classes: the lanes' fragments by the figures of the PTX
// ISA. Those of MFMA: mfma_instruction_test.cpp.
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "operand/kv_buffer.hpp"
#include "testing/material/kv_fragments.hpp"

namespace pagoda::operand {
namespace {

using namespace material;
using arch::BFloat16;
using arch::Half;

template <class Kernel>
void expect_fragments(const KVCacheCase& cache) {
  EXPECT_EQ(wrong_fragments<Kernel>(cache), "");
}
template <class Buffer, int... parts>
void expect_fragments_by_parts() {
  EXPECT_EQ((wrong_fragments_by_parts<Buffer, 128, parts...>()), "");
}

TEST(LoadFromShared, k_fragments_are_those_of_the_instruction) {  // transpose_b
  expect_fragments_by_parts<PrefillK<BFloat16>, 8>();
  expect_fragments_by_parts<PrefillK<Half>, 8>();
  expect_fragments_by_parts<PrefillK<BFloat16, 1, 2, 1>, 8>();   // group_size 1: k_mma 0 and 1
  expect_fragments_by_parts<AsyncK<BFloat16, 64, 128, 2>, 8>();  // group_size 2: k_mma 0 .. 3
}

TEST(LoadFromShared, v_fragments_are_those_of_the_instruction) {
  expect_fragments_by_parts<PrefillV<BFloat16>, 16>();
  expect_fragments_by_parts<PrefillV<Half>, 16>();
  expect_fragments_by_parts<PrefillV<BFloat16, 1, 2, 1>, 16>();       // group_size 1: k_mma 0 and 1
  expect_fragments_by_parts<AsyncV<BFloat16, 64, 64, 128, 2>, 16>();  // group_size 2: k_mma 0, 1
}

TEST(LoadFromShared, every_warp_has_its_own_warp_tile) {  // warp_n 0 .. 3
  expect_fragments_by_parts<TokenK<BFloat16>, 2>();
  expect_fragments_by_parts<TokenK<BFloat16, 1, 1, 1>, 2>();
  expect_fragments_by_parts<TokenV<BFloat16, 128>, 4>();
  expect_fragments_by_parts<TokenV<BFloat16, 128, 32, 1, 1, 1>, 4>();
  expect_fragments_by_parts<AsyncK<BFloat16, 16, 64, 2>, 2>();
  expect_fragments_by_parts<AsyncV<BFloat16, 16, 32, 128, 2>, 4>();
}

TEST(LoadFromShared, every_depth_of_token_generation) {
  expect_fragments<FragmentKernel<TokenV<BFloat16, 64>, 2>>(KVCacheCase({.dim = 64}, 64));
  expect_fragments<FragmentKernel<TokenV<BFloat16, 256>, 2>>(KVCacheCase({.dim = 256}, 64));
  expect_fragments<FragmentKernel<TokenV<BFloat16, 512, 16, 1, 1, 1>, 4>>(
      KVCacheCase({.dim = 512}, 64));
}

TEST(LoadFromShared, parts_are_parts_of_the_whole) {
  expect_fragments_by_parts<PrefillK<BFloat16>, 1, 2, 3, 4>();
  expect_fragments_by_parts<PrefillK<BFloat16, 1, 1, 1>, 1, 2, 3, 4, 5, 6>();
  expect_fragments_by_parts<PrefillV<BFloat16>, 1, 3, 4>();
  expect_fragments_by_parts<PrefillV<BFloat16, 1, 1, 1>, 1, 2, 3, 4, 5, 6>();
  expect_fragments_by_parts<TokenV<BFloat16, 128, 32, 1, 1, 1>, 1, 2, 3>();
  expect_fragments_by_parts<AsyncV<BFloat16, 64, 32, 128, 2, 1>, 4>();
}

TEST(LoadFromShared, parts_may_start_at_any_column_tile) {  // 1 + 2 + 2 + ...
  const KVCacheCase cache({}, 64);
  expect_fragments<FragmentKernel<PrefillK<BFloat16>, 4, 2, 1>>(cache);
  expect_fragments<FragmentKernel<PrefillK<BFloat16, 1, 1, 1>, 4, 2, 1>>(cache);
  expect_fragments<FragmentKernel<PrefillV<BFloat16>, 2, 2, 1>>(cache);
  expect_fragments<FragmentKernel<PrefillV<BFloat16, 1, 1, 1>, 2, 2, 1>>(cache);
  expect_fragments<FragmentKernel<TokenV<BFloat16, 128, 32, 1, 1, 1>, 2, 2, 1>>(cache);
  expect_fragments<FragmentKernel<AsyncV<BFloat16, 64, 32, 128, 2, 1>, 2, 4, 3>>(cache);
}

TEST(LoadFromShared, a_part_leaves_the_rest_of_the_mma_tile_alone) {
  struct Kernel : FragmentKernel<PrefillK<BFloat16>, 1> {
    static PAGODA_DEVICE void run(const Params& params) {
      auto& storage = arch::shared_storage<Storage>();
      Buffer buffer(storage.tiles.data(), 0);
      buffer.begin({params.source, params.keys, KVCacheCase::kSequence, 0}, 64);
      buffer.load_from_dram();
      buffer.copy_to_shared();
      arch::syncthreads();
      for (arch::Words<4>& words : buffer.mma_tile) {
        for (uint32_t& word : words.word) word = kUntouched;
      }
      buffer.load_from_shared<0, 2, 3>();
      for (int n = 0; n < 8; ++n) {
        arch::store(params.out + (arch::thread_idx() * 8 + n), buffer.get_mma_tile()[n]);
      }
    }
  };
  const KVCacheCase cache({}, 64);
  std::string reports;
  const std::vector<uint32_t> words = fragments<Kernel>(cache, 0, 64, {}, reports);
  ASSERT_EQ(reports, "");
  std::vector<uint32_t> expected = expected_fragments<Kernel>(cache, 0, 64);
  for (size_t i = 0; i < expected.size(); ++i) {
    if (i / 4 % 8 < 2 || i / 4 % 8 > 4) expected[i] = Kernel::kUntouched;
  }
  EXPECT_EQ(words, expected);
}

TEST(LoadFromShared, a_warp_with_all_columns_may_have_any_number_of_them) {  // prefill
  using V96 = KVBufferImpl<KVBufferConfig::v(64, 64, 32, 96), Core<BFloat16, 1, false>,
                           blocked_swizzle(32), 64, 64, 32, 96, kBufferThreads>;
  expect_fragments<FragmentKernel<V96, 2>>(KVCacheCase({.dim = 96}, 64));
  expect_fragments<FragmentKernel<AsyncV<BFloat16, 64, 32, 192, 2>, 2>>(
      KVCacheCase({.dim = 192}, 64));
}

TEST(LoadFromShared, stages_and_tiles_change_nothing) {
  expect_fragments_by_parts<PrefillK<BFloat16, 2, 2>, 8>();
  expect_fragments_by_parts<PrefillK<BFloat16, 2, 3>, 8>();
  expect_fragments_by_parts<TokenV<BFloat16, 128, 32, 2, 2>, 4>();
}

TEST(LoadFromShared, the_oracle_finds_a_wrong_element) {
  using Kernel = FragmentKernel<PrefillK<BFloat16>, 4>;
  KVCacheCase cache({}, 64);
  std::string reports;
  const std::vector<uint32_t> words = fragments<Kernel>(cache, 0, 64, {}, reports);
  EXPECT_NE(words, expected_fragments<Kernel>(cache, 0, 63));  // a row less
  cache.set(63, 127, cache.at(63, 127) * 1.02F);
  EXPECT_NE(words, expected_fragments<Kernel>(cache, 0, 64));
}

}  // namespace
}  // namespace pagoda::operand
