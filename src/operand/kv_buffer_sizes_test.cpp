// What follows from the parameters of KVBufferImpl at compile time, line by line of its
// documentation: every number is written out, for prefill and for token generation.
#include <concepts>
#include <cstdint>
#include <gtest/gtest.h>

#include "testing/material/kv_buffers.hpp"

namespace pagoda::operand {
namespace {

using namespace material;
using arch::BFloat16;
using arch::Half;

// Prefill: K {BN 64, WN 64, BK 32}, V {BK 32, depth 128}. Token generation: BN 64, WN 16.
using K = PrefillK<BFloat16>;
using V = PrefillV<BFloat16>;
using GenK = TokenK<BFloat16>;
using GenV64 = TokenV<BFloat16, 64>;
using GenV128 = TokenV<BFloat16, 128>;
using GenV256 = TokenV<BFloat16, 256>;
using GenV512 = TokenV<BFloat16, 512, 16, 1, 1, 1>;  // BK 16, group_size 1

TEST(KVBufferConfig, k_has_all_keys_and_bk_elements) {
  constexpr KVBufferConfig k = KVBufferConfig::k(64, 16, 32);
  EXPECT_EQ(k.wsize, 16);
  EXPECT_EQ(k.wtile_dim0, 16);
  EXPECT_EQ(k.wtile_dim1, 32);
  EXPECT_EQ(k.btile_dim0, 64);
  EXPECT_EQ(k.btile_dim1, 32);
  EXPECT_EQ(k.iterator_axis, 1);
}

TEST(KVBufferConfig, v_has_bk_keys_and_the_columns_of_o) {
  constexpr KVBufferConfig prefill = KVBufferConfig::v(64, 64, 32, 128);
  EXPECT_EQ(prefill.wsize, 128);
  EXPECT_EQ(prefill.wtile_dim0, 32);
  EXPECT_EQ(prefill.wtile_dim1, 128);
  EXPECT_EQ(prefill.btile_dim0, 32);
  EXPECT_EQ(prefill.btile_dim1, 128);
  EXPECT_EQ(prefill.iterator_axis, 0);
  // The four warps that share the keys have a quarter of the columns each.
  constexpr KVBufferConfig token = KVBufferConfig::v(64, 16, 32, 256);
  EXPECT_EQ(token.wsize, 64);
  EXPECT_EQ(token.wtile_dim0, 32);
  EXPECT_EQ(token.wtile_dim1, 64);
  EXPECT_EQ(token.btile_dim0, 32);
  EXPECT_EQ(token.btile_dim1, 256);
  EXPECT_EQ(token.iterator_axis, 0);
}

TEST(KVBufferSizes, mma_n_and_mma_k_are_those_of_the_instruction) {
  EXPECT_EQ(K::MMA_N, 8);
  EXPECT_EQ(K::MMA_K, 16);
  EXPECT_EQ(GenV64::MMA_N, 8);
  EXPECT_EQ(GenV64::MMA_K, 16);
}

TEST(KVBufferSizes, simd_width_is_16_bytes) {
  EXPECT_EQ(K::simd_width, 8);
  EXPECT_EQ(GenV512::simd_width, 8);
  EXPECT_EQ(PrefillK<Half>::simd_width, 8);
}

TEST(KVBufferSizes, num_mmas_is_wsize_over_mma_n) {
  EXPECT_EQ(K::num_mmas, 8);     // 64 keys
  EXPECT_EQ(V::num_mmas, 16);    // 128 columns
  EXPECT_EQ(GenK::num_mmas, 2);  // 16 keys
  EXPECT_EQ(GenV64::num_mmas, 2);
  EXPECT_EQ(GenV128::num_mmas, 4);
  EXPECT_EQ(GenV256::num_mmas, 8);
  EXPECT_EQ(GenV512::num_mmas, 16);
}

TEST(KVBufferSizes, num_k_tiles_is_bk_over_mma_k_and_group_size) {
  EXPECT_EQ(K::num_k_tiles, 1);
  EXPECT_EQ((PrefillK<BFloat16, 1, 1, 1>::num_k_tiles), 2);  // group_size 1
  EXPECT_EQ(V::num_k_tiles, 1);
  EXPECT_EQ((PrefillV<BFloat16, 1, 1, 1>::num_k_tiles), 2);
  EXPECT_EQ(GenK::num_k_tiles, 1);
  EXPECT_EQ(GenV512::num_k_tiles, 1);                               // BK 16, group_size 1
  EXPECT_EQ((AsyncK<BFloat16, 64, 128, 2>::num_k_tiles), 4);        // BK 128
  EXPECT_EQ((AsyncV<BFloat16, 16, 64, 64, 2, 1>::num_k_tiles), 4);  // BK 64, group_size 1
}

TEST(KVBufferSizes, num_repeats_is_btile_dim1_over_simd_width) {
  EXPECT_EQ(K::num_repeats, 4);
  EXPECT_EQ(V::num_repeats, 16);
  EXPECT_EQ(GenK::num_repeats, 4);
  EXPECT_EQ(GenV64::num_repeats, 8);
  EXPECT_EQ(GenV128::num_repeats, 16);
  EXPECT_EQ(GenV256::num_repeats, 32);
  EXPECT_EQ(GenV512::num_repeats, 64);
}

TEST(KVBufferSizes, num_warps_n_is_bn_over_wn) {
  EXPECT_EQ(K::num_warps_n, 1);
  EXPECT_EQ(V::num_warps_n, 1);
  EXPECT_EQ(GenK::num_warps_n, 4);
  EXPECT_EQ(GenV512::num_warps_n, 4);
}

TEST(KVBufferSizes, warp_tiles_are_those_of_the_config) {
  EXPECT_EQ(K::wtile_dim0, 64);
  EXPECT_EQ(K::wtile_dim1, 32);
  EXPECT_EQ(V::wtile_dim0, 32);
  EXPECT_EQ(V::wtile_dim1, 128);
  EXPECT_EQ(GenK::wtile_dim0, 16);
  EXPECT_EQ(GenK::wtile_dim1, 32);
  EXPECT_EQ(GenV64::wtile_dim1, 16);
  EXPECT_EQ(GenV128::wtile_dim1, 32);
  EXPECT_EQ(GenV512::wtile_dim0, 16);
  EXPECT_EQ(GenV512::wtile_dim1, 128);
}

// `row_stride`, `chunk_stride`: in vectors of simd_width elements.
template <class Buffer>
void expect_smem_layout(int rows, int chunks, int row_stride, int chunk_stride) {
  VectorLayout layout = Buffer::smem_layout;
  layout.swizzle = {};
  EXPECT_EQ(layout.rows, rows);
  EXPECT_EQ(layout.chunks, chunks);
  for (int row = 0; row < rows; ++row) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      ASSERT_EQ(layout.index(row, chunk), row * row_stride + chunk * chunk_stride);
    }
  }
}

TEST(KVBufferSizes, smem_layout_of_prefill_is_a_blocked_product) {
  expect_smem_layout<K>(64, 4, 1, 64);  // base_layout [64, 8], once for each of 4 repeats
  expect_smem_layout<V>(32, 16, 1, 32);
}

TEST(KVBufferSizes, smem_layout_of_token_generation_is_row_major) {
  expect_smem_layout<GenK>(64, 4, 4, 1);
  expect_smem_layout<GenV64>(32, 8, 8, 1);
  expect_smem_layout<GenV128>(32, 16, 16, 1);
  expect_smem_layout<GenV256>(32, 32, 32, 1);
  expect_smem_layout<GenV512>(16, 64, 64, 1);
}

template <class Buffer>
void expect_thread_layout(int rows, int chunks) {
  EXPECT_EQ(Buffer::thread_layout.rows, rows);
  EXPECT_EQ(Buffer::thread_layout.chunks, chunks);
}

TEST(KVBufferSizes, thread_layout_of_prefill_has_4_threads_a_row) {
  expect_thread_layout<K>(32, 4);
  expect_thread_layout<V>(32, 4);
  constexpr ThreadLayout of_256 = kv_thread_layout(KVBufferConfig::k(64, 64, 32), 256, false);
  EXPECT_EQ(of_256.rows, 64);
  EXPECT_EQ(of_256.chunks, 4);
}

TEST(KVBufferSizes, thread_layout_of_token_generation_has_whole_rows) {
  expect_thread_layout<GenK>(32, 4);
  expect_thread_layout<GenV64>(16, 8);
  expect_thread_layout<GenV128>(8, 16);
  expect_thread_layout<GenV256>(4, 32);
  expect_thread_layout<GenV512>(2, 64);
  // A tile of 16 x 32 has 64 vectors: as many threads load.
  constexpr ThreadLayout small = kv_thread_layout(KVBufferConfig::k(16, 16, 32), 128, true);
  EXPECT_EQ(small.rows, 16);
  EXPECT_EQ(small.chunks, 4);
}

TEST(KVBufferSizes, load_tile_has_the_vectors_of_all_stages) {
  constexpr size_t kVector = 8 * sizeof(BFloat16);
  EXPECT_EQ(sizeof(K::LoadTile), 8 * kVector);
  EXPECT_EQ(sizeof(PrefillK<BFloat16, 2>::LoadTile), 16 * kVector);
  EXPECT_EQ(sizeof(PrefillK<BFloat16, 1, 1, 1>::LoadTile), 16 * kVector);  // num_k_tiles 2
  EXPECT_EQ(sizeof(V::LoadTile), 16 * kVector);
  EXPECT_EQ(sizeof(PrefillV<BFloat16, 2>::LoadTile), 32 * kVector);
  EXPECT_EQ(sizeof(GenK::LoadTile), 2 * kVector);
  EXPECT_EQ(sizeof(GenV64::LoadTile), 2 * kVector);
  EXPECT_EQ(sizeof(TokenV<BFloat16, 128, 32, 2>::LoadTile), 8 * kVector);
  EXPECT_EQ(sizeof(GenV256::LoadTile), 8 * kVector);
  EXPECT_EQ(sizeof(GenV512::LoadTile), 16 * kVector);
  EXPECT_EQ(sizeof(K::load_tile), 8 * kVector);
}

TEST(KVBufferSizes, mma_tile_has_a_vector_for_each_mma) {
  constexpr size_t kVector = 8 * sizeof(BFloat16);
  EXPECT_EQ(sizeof(K::MMATile), 8 * kVector);
  EXPECT_EQ(sizeof(V::MMATile), 16 * kVector);
  EXPECT_EQ(sizeof(GenK::MMATile), 2 * kVector);
  EXPECT_EQ(sizeof(GenV512::MMATile), 16 * kVector);
  EXPECT_EQ((sizeof(AsyncK<BFloat16, 64, 128, 2>::MMATile)), 8 * kVector);
}

TEST(KVBufferSizes, a_thread_loads_its_part_of_a_block_tile) {
  EXPECT_EQ(K::vectors, 2);        // 64 x 4 vectors, 128 threads
  EXPECT_EQ(V::vectors, 4);        // 32 x 16
  EXPECT_EQ(GenK::vectors, 2);     // 64 x 4
  EXPECT_EQ(GenV64::vectors, 2);   // 32 x 8
  EXPECT_EQ(GenV256::vectors, 8);  // 32 x 32
  EXPECT_EQ(GenV512::vectors, 8);  // 16 x 64
}

TEST(KVBufferSizes, get_dtype_is_the_type_of_shared_memory) {
  static_assert(std::same_as<K::T, BFloat16> && std::same_as<PrefillV<Half>::T, Half>);
  static_assert(std::same_as<AsyncV<Half, 64, 64, 128, 2>::T, Half>);
}

// What the concept asks for, less copy_to_shared.
struct WithoutCopy {
  static constexpr int BN = 64;
  void begin(const KVTile<64>& /*tile*/, int32_t /*rows*/, int32_t /*step*/) {}
  void load_from_dram() {}
  template <int k_mma>
  void load_from_shared() {}
  [[nodiscard]] int get_mma_tile() const { return 0; }
};
struct Complete : WithoutCopy {
  template <int tile_id>
  void copy_to_shared() {}
};
struct NotConst : Complete {
  int get_mma_tile() { return 0; }  // hides the const one
};

TEST(KVBufferConcept, holds_for_both_classes_and_for_nothing_incomplete) {
  static_assert(KVBuffer<K> && KVBuffer<V> && KVBuffer<GenK> && KVBuffer<GenV512>);
  static_assert(KVBuffer<AsyncK<BFloat16, 64, 128, 2>> && KVBuffer<AsyncV<Half, 16, 64, 128, 3>>);
  static_assert(KVBuffer<Complete>);
  static_assert(!KVBuffer<WithoutCopy>);
  static_assert(!KVBuffer<NotConst>);
}

}  // namespace
}  // namespace pagoda::operand
