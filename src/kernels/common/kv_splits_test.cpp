// num_kv_splits: the numbers that were fastest on an H200 (mha_sm90/README.md).
#include <gtest/gtest.h>

#include "kernels/common/call_arguments.hpp"
#include "pagoda/mask.hpp"

namespace pagoda::kernels {
namespace {

constexpr int32_t kMultiprocessors = 132, kTileRows = 128, kTileKeys = 128;

struct Call {
  int32_t batch, tokens, keys, q_heads, kv_heads;
  bool is_ragged = true, is_causal = false;
};

int32_t num_splits(const Call& call) {
  const Mask mask = call.is_causal ? Mask::causal() : Mask::none();
  core::Problem p;
  p.batch = call.batch;
  p.num_q_heads = call.q_heads;
  p.num_kv_heads = call.kv_heads;
  p.group = call.q_heads / call.kv_heads;
  p.head_dim_qk = p.head_dim_vo = 128;
  p.is_ragged = call.is_ragged;
  p.has_host_lengths = false;
  p.total_q = call.batch * call.tokens;
  p.max_seqlen_q = call.tokens;
  p.max_seqlen_kv = p.max_seqlen_kv_bound = call.keys;
  p.q.dtype = p.k.dtype = p.v.dtype = p.out.dtype = DType::kBF16;
  p.mask = mask.nodes();
  // Never read: the number follows from shapes.
  const int32_t cu_rows[1] = {};
  schedule::TileGrid grid = tile_grid(p, 1, kTileRows, int64_t{32} << 20);
  if (call.is_ragged) grid.cu_rows = static_cast<const int32_t*>(cu_rows);
  return num_kv_splits(p, grid, kMultiprocessors, kTileKeys);
}

TEST(KVSplits, few_row_tiles_over_many_keys_fill_one_wave) {
  EXPECT_EQ(num_splits({1, 256, 131072, 8, 1}), 8);  // 16 row tiles
  EXPECT_EQ(num_splits({1, 512, 32768, 8, 1}), 4);   // 32
  EXPECT_EQ(num_splits({.batch = 1,
                        .tokens = 128,
                        .keys = 32768,
                        .q_heads = 32,
                        .kv_heads = 8,
                        .is_causal = true}),
            4);
  EXPECT_EQ(num_splits({.batch = 1,
                        .tokens = 300,
                        .keys = 12000,
                        .q_heads = 14,
                        .kv_heads = 2,
                        .is_causal = true}),
            3);
}

TEST(KVSplits, a_ragged_grid_is_not_larger_than_its_tiles) {
  Call call{1, 256, 131072, 8, 1};
  const int32_t ragged = num_splits(call);
  call.is_ragged = false;
  EXPECT_EQ(num_splits(call), ragged);
}

TEST(KVSplits, full_waves_and_short_keys_are_not_split) {
  EXPECT_EQ(num_splits({.batch = 8, .tokens = 2048, .keys = 2048, .q_heads = 16, .kv_heads = 16}),
            1);
  EXPECT_EQ(num_splits({.batch = 1, .tokens = 2304, .keys = 2304, .q_heads = 8, .kv_heads = 8}), 1);
  EXPECT_EQ(num_splits({1, 128, 256, 8, 8}), 1);
}

TEST(KVSplits, causal_prefill_is_balanced_by_its_queue) {
  for (const int32_t tokens : {2048, 4096, 16384}) {
    EXPECT_EQ(num_splits({.batch = 1,
                          .tokens = tokens,
                          .keys = tokens,
                          .q_heads = 8,
                          .kv_heads = 1,
                          .is_causal = true}),
              1)
        << tokens;
  }
}

}  // namespace
}  // namespace pagoda::kernels
