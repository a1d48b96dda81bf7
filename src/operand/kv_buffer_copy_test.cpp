// KVBufferImpl::copy_to_shared: which register stage is stored, and where. smem_iter is circular.
#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "operand/kv_buffer.hpp"
#include "testing/material/kv_copies.hpp"

namespace pagoda::operand {
namespace {

using namespace material;
using arch::BFloat16;
using emulator::all_reports;

template <VectorSwizzle swizzle, bool token_gen>
using SwizzledK =
    KVBufferImpl<KVBufferConfig::k(64, token_gen ? 16 : 64, 32), Core<BFloat16, 2, true>, swizzle,
                 64, token_gen ? 16 : 64, 32, 128, kBufferThreads, 1, token_gen, 4>;
template <VectorSwizzle swizzle, bool token_gen>
using SwizzledV =
    KVBufferImpl<KVBufferConfig::v(64, token_gen ? 16 : 64, 32, 128), Core<BFloat16, 2, false>,
                 swizzle, 64, token_gen ? 16 : 64, 32, 128, kBufferThreads, 1, token_gen, 2>;

TEST(CopyToShared, stores_at_the_places_of_the_layout_without_a_swizzle) {
  const KVCacheCase cache({}, 64);
  EXPECT_EQ((wrong_copies<SwizzledK<VectorSwizzle{}, false>, 4>(cache, 0, 64)), "");
  EXPECT_EQ((wrong_copies<SwizzledK<VectorSwizzle{}, true>, 4>(cache, 0, 64)), "");
  EXPECT_EQ((wrong_copies<SwizzledV<VectorSwizzle{}, false>, 2>(cache, 0, 64)), "");
  EXPECT_EQ((wrong_copies<SwizzledV<VectorSwizzle{}, true>, 2>(cache, 0, 64)), "");
}

TEST(CopyToShared, stores_at_the_places_of_the_layout_with_a_swizzle) {
  const KVCacheCase cache({}, 64);
  EXPECT_EQ((wrong_copies<SwizzledK<blocked_swizzle(64), false>, 4>(cache, 0, 64)), "");
  EXPECT_EQ((wrong_copies<SwizzledK<row_major_swizzle(4), true>, 4>(cache, 0, 64)), "");
  EXPECT_EQ((wrong_copies<SwizzledV<blocked_swizzle(32), false>, 2>(cache, 0, 64)), "");
  EXPECT_EQ((wrong_copies<SwizzledV<row_major_swizzle(16), true>, 2>(cache, 0, 64)), "");
  using Plain = CopyKernel<SwizzledK<VectorSwizzle{}, false>, 4>;
  using Swizzled = CopyKernel<SwizzledK<blocked_swizzle(64), false>, 4>;
  EXPECT_NE(copied_tiles<Plain>(cache, 0, 64), copied_tiles<Swizzled>(cache, 0, 64));
}

TEST(CopyToShared, every_depth_of_token_generation_is_complete) {
  for (const int rows : {64, 47}) {
    const KVCacheCase cache64({.dim = 64}, 64), cache256({.dim = 256}, 64);
    const KVCacheCase cache512({.dim = 512}, 64);
    EXPECT_EQ((wrong_copies<TokenV<BFloat16, 64, 32, 2, 2>, 2>(cache64, 0, rows)), "");
    EXPECT_EQ((wrong_copies<TokenV<BFloat16, 256, 32, 2, 2>, 2>(cache256, 0, rows)), "");
    EXPECT_EQ((wrong_copies<TokenV<BFloat16, 512, 16, 1, 2, 1>, 4>(cache512, 0, rows)), "");
  }
}

TEST(CopyToShared, copies_stage_tile_id) {
  const KVCacheCase cache({}, 64);
  EXPECT_EQ((wrong_copies<PrefillK<BFloat16, 2, 4>, 4>(cache, 0, 64)), "");
  EXPECT_EQ((wrong_copies<PrefillV<BFloat16, 2, 2>, 2>(cache, 0, 64)), "");
  // The other stage: the first two block tiles change places.
  using Right = CopyKernel<PrefillK<BFloat16, 2, 2>, 2>;
  using Wrong = CopyKernel<PrefillK<BFloat16, 2, 2>, 2, 1>;
  const std::vector<uint16_t> expected = expected_tiles<Right>(cache, 0, 64);
  std::vector<uint16_t> wrong = copied_tiles<Wrong>(cache, 0, 64);
  ASSERT_EQ(wrong.size(), expected.size());
  EXPECT_NE(wrong, expected);
  std::rotate(wrong.begin(), wrong.begin() + Wrong::kTile, wrong.end());
  EXPECT_EQ(wrong, expected);
}

TEST(CopyToShared, begin_keeps_the_register_stages) {
  // The mainloop begins the next tile before it copies the loaded one.
  struct Kernel : CopyKernel<PrefillK<BFloat16>, 1> {
    static PAGODA_DEVICE void run(const Params& params) {
      auto& storage = arch::shared_storage<Storage>();
      Buffer buffer(storage.tiles.data(), 0);
      buffer.begin({params.source, params.keys, KVCacheCase::kSequence, 0}, 64);
      buffer.load_from_dram();
      buffer.begin({params.source, params.keys, KVCacheCase::kSequence, 64}, 1, 3);
      buffer.template copy_to_shared<0>();
      arch::syncthreads();
      for (int i = arch::thread_idx(); i < kTile; i += kThreads) {
        arch::store(params.out + i, arch::load(storage.tiles.at(i)).bits);
      }
    }
  };
  const KVCacheCase cache({}, 65);
  EXPECT_EQ(copied_tiles<Kernel>(cache, 0, 64), expected_tiles<Kernel>(cache, 0, 64));
}

// --- smem_iter ---------------------------------------------------------------------------------

template <int count>
struct IteratorKernel {
  struct Params {
    arch::GlobalPtr<uint32_t> out;  // [8]
  };
  struct Storage {
    arch::SharedArray<BFloat16, count * 64 * 32, 128> tiles;
  };
  static constexpr int kThreads = 32;
  static PAGODA_DEVICE void run(const Params& params) {
    if (arch::thread_idx() != 0) return;
    auto& storage = arch::shared_storage<Storage>();
    typename PrefillK<BFloat16, 1, count>::SharedIterator iterator(storage.tiles.data());
    for (int i = 0; i < 8; ++i) {
      arch::store(params.out + i, iterator.tile().address() - storage.tiles.data().address());
      iterator.advance();
    }
  }
};
template <int count>
std::vector<uint32_t> tile_offsets() {
  using Kernel = IteratorKernel<count>;
  std::vector<uint32_t> out(8);
  const emulator::Result result =
      emulator::launch<Kernel>(emulator::shape_of<Kernel>("iterator", {1}), {out.data()},
                               {emulator::output("out", out.data(), out.size())});
  EXPECT_EQ(all_reports(result), "");
  return out;
}

TEST(SmemIter, is_circular) {
  constexpr uint32_t kTile = 64 * 32 * 2;  // bytes of K's block tile
  EXPECT_EQ(tile_offsets<1>(), (std::vector<uint32_t>(8, 0)));
  EXPECT_EQ(tile_offsets<2>(), (std::vector<uint32_t>{0, kTile, 0, kTile, 0, kTile, 0, kTile}));
  EXPECT_EQ(tile_offsets<3>(),
            (std::vector<uint32_t>{0, kTile, 2 * kTile, 0, kTile, 2 * kTile, 0, kTile}));
}

TEST(SmemIter, a_copy_goes_to_the_current_tile) {
  const KVCacheCase cache({}, 64);
  // The fourth takes the first's place.
  EXPECT_EQ((wrong_copies<PrefillK<BFloat16, 1, 3>, 4>(cache, 0, 64)), "");
  EXPECT_EQ((wrong_copies<PrefillK<BFloat16, 2, 2>, 4>(cache, 0, 64)), "");
  EXPECT_EQ((wrong_copies<PrefillK<BFloat16, 1, 1>, 3>(cache, 0, 64)), "");
}

}  // namespace
}  // namespace pagoda::operand
