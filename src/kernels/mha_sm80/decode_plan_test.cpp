// Which calls of one token have a decode launch, with how many CTAs, and how these divide the KV
// tiles of the batch.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <vector>

#include "arch/quotient.hpp"
#include "core/int_math.hpp"
#include "kernels/common/kv_buffer/decode_arguments.hpp"
#include "kernels/common/kv_buffer/decode_work.hpp"
#include "kernels/common/kv_buffer/launch_plan.hpp"
#include "kernels/mha_sm80/instances.hpp"
#include "pagoda/mask.hpp"

namespace pagoda::mha_sm80 {
namespace {

using kernels::DecodeShares;
using kernels::kv_buffer::Launch;
using kernels::kv_buffer::LaunchPlan;
using kernels::kv_buffer::RowKind;

constexpr int32_t kMultiprocessors = 132;  // an H200: 264 CTAs of d128 at once
constexpr int64_t kMostWorkspace = int64_t{128} << 20;

// One token of each of `batch` sequences of up to `keys` keys, in pages of 16; 32/8 heads of 128.
core::Problem problem_of(int32_t batch, int32_t keys) {
  static const int32_t table = 0;
  core::Problem p;
  p.batch = batch;
  p.num_q_heads = 32;
  p.num_kv_heads = 8;
  p.group = 4;
  p.head_dim_qk = p.head_dim_vo = 128;
  p.has_host_lengths = false;
  p.max_seqlen_q = p.max_seqlen_q_bound = 1;
  p.total_q = batch;
  p.max_seqlen_kv = p.max_seqlen_kv_bound = keys;
  p.kv_kind = core::KVKind::kPaged;
  p.page_size = 16;
  p.block_table.data = &table;
  p.block_table.row_stride = core::ceil_div(keys, 16);
  p.q.dtype = p.k.dtype = p.v.dtype = p.out.dtype = DType::kBF16;
  p.q.row_stride = p.q.sequence_stride = p.out.row_stride = p.out.sequence_stride = 32 * 128;
  p.q.head_stride = p.out.head_stride = p.k.head_stride = p.v.head_stride = 128;
  p.k.row_stride = p.v.row_stride = 8 * 128;
  p.k.outer_stride = p.v.outer_stride = 16 * 8 * 128;
  static const Mask mask = Mask::causal();
  p.mask = mask.nodes();
  return p;
}

std::unique_ptr<LaunchPlan> plan_of(int32_t batch, int32_t keys) {
  return make_plan(kShapes[1], {.variants = kVariants, .tile_of = tile_of}, problem_of(batch, keys),
                   kMultiprocessors, {});
}

Launch launch_of(int32_t batch, int32_t keys) {
  const auto plan = plan_of(batch, keys);
  EXPECT_EQ(plan->num_launches, 1);
  return plan->launches[0];
}

// The numbers that were the fastest on an H200 (kv_buffer/README.md).
TEST(DecodePlan, splits_no_row_tile_where_whole_ones_fill_the_gpu) {
  struct Batch {
    int32_t batch, ctas_per_sm;
  };
  for (const auto [batch, ctas_per_sm] :
       {Batch{32, 2}, {64, 2}, {128, 2}, {48, 3}, {191, 3}, {200, 3}}) {
    const Launch launch = launch_of(batch, 4096);
    EXPECT_EQ(launch.rows, RowKind::kDecode);
    EXPECT_EQ(launch.decode_clusters, 8 * batch) << batch;
    // Neither one wave nor four need halves. Lengths round up to one more each.
    const bool may_halve = batch > 32 && batch < 200;
    EXPECT_EQ(launch.shares, may_halve ? DecodeShares::kHalvesUnequal : DecodeShares::kEven);
    EXPECT_EQ(launch.ctas, (may_halve ? 3 : 2) * 8 * batch) << batch;
    EXPECT_EQ(launch.most_ctas_per_sm, ctas_per_sm) << batch;
  }
  EXPECT_EQ(launch_of(64, 4096).min_tiles, 16);  // of sequences longer than the others
}

// From 20 KV tiles on kFewestTiles allow two splits. One cluster each needs no workspace and no
// more CTAs than row tiles.
TEST(DecodePlan, short_sequences_have_one_cluster_each) {
  for (const int32_t batch : {48, 64, 191, 900}) {
    const auto plan = plan_of(batch, 19 * 64);
    EXPECT_EQ(plan->launches[0].shares, DecodeShares::kOneEach) << batch;
    EXPECT_EQ(plan->launches[0].ctas, 8 * batch);
    EXPECT_EQ(plan->split.partial_bytes, 0) << batch;
    EXPECT_NE(launch_of(batch, 19 * 64 + 1).shares, DecodeShares::kOneEach) << batch;
  }
}

TEST(DecodePlan, splits_where_a_last_wave_would_be_too_empty) {
  for (const int32_t batch : {40, 100}) {  // 1.2 and 3.03 waves of two CTAs, 0.8 and 2.02 of three
    const Launch launch = launch_of(batch, 4096);
    EXPECT_EQ(launch.decode_clusters, 8 * batch * (batch == 40 ? 4 : 2)) << batch;
    EXPECT_EQ(launch.min_tiles, 16);
    EXPECT_EQ(launch.shares, DecodeShares::kEven);
    EXPECT_EQ(launch.most_ctas_per_sm, 0);
  }
}

TEST(DecodePlan, fills_the_gpu_where_row_tiles_are_fewer_than_ctas) {
  const Launch launch = launch_of(1, 8192);
  EXPECT_EQ(launch.rows, RowKind::kDecode);
  EXPECT_GT(launch.decode_clusters, 64);
  EXPECT_LE(launch.decode_clusters, 2 * kMultiprocessors);
  EXPECT_EQ(launch.ctas, launch.decode_clusters);
  EXPECT_EQ(launch.min_tiles, 1);
  EXPECT_EQ(launch.most_ctas_per_sm, 0);
}

TEST(DecodePlan, the_limit_of_ctas_reaches_the_launch) {
  const auto plan = plan_of(32, 4096);
  std::vector<std::byte> workspace(static_cast<size_t>(plan->workspace_bytes));
  const core::Problem p = problem_of(32, 4096);
  EXPECT_EQ(make_arguments(*plan, plan->launches[0], p, workspace).most_ctas_per_sm, 2);
}

TEST(DecodePlan, serves_block_tables_and_csr) {
  core::Problem p = problem_of(4, 4096);
  p.block_table = {};
  const auto plan =
      make_plan(kShapes[1], {.variants = kVariants, .tile_of = tile_of}, p, kMultiprocessors, {});
  EXPECT_EQ(plan->launches[0].rows, RowKind::kDecode);
}

TEST(DecodePlan, serves_wide_bounds_of_the_lengths) {
  EXPECT_EQ(launch_of(64, 131'072).rows, RowKind::kDecode);
  EXPECT_EQ(launch_of(200, 1'000'000).rows, RowKind::kDecode);
  EXPECT_EQ(launch_of(1, 100'000'000).rows, RowKind::kTokenGeneration);  // inexact quotients
}

TEST(DecodePlan, leaves_batches_of_thousands_to_a_bounded_workspace) {
  for (const int32_t batch : {1, 64, 200, 500, 900, 1100, 8192, 65'536}) {
    for (const int32_t keys : {63, 512, 4096, 131'072}) {
      const auto plan = plan_of(batch, keys);
      EXPECT_LE(plan->workspace_bytes, kMostWorkspace) << batch << " x " << keys;
    }
  }
  EXPECT_EQ(launch_of(900, 512).rows, RowKind::kDecode);
  EXPECT_EQ(launch_of(992, 4096).rows, RowKind::kDecode);  // most_decode_row_tiles
  EXPECT_EQ(launch_of(993, 4096).rows, RowKind::kTokenGeneration);
  EXPECT_EQ(launch_of(1100, 512).rows, RowKind::kDecode);  // one CTA each: no workspace
}

// Rounding up is exact in fp32 for batches of up to 2^19 KV tiles, and never down.
TEST(DecodePlan, tiles_of_a_cta_are_never_fewer_than_the_grid_has_room_for) {
  std::mt19937 random(7);
  for (int i = 0; i < 2'000'000; ++i) {
    const auto total = static_cast<int32_t>(1 + random() % (1U << (1 + random() % 30)));
    const auto ctas = static_cast<int32_t>(1 + random() % (1U << (1 + random() % 17)));
    kernels::DecodeArguments decode = kernels::kv_buffer::decode_arguments(
        kernels::AttentionArguments{}, ctas, 1, DecodeShares::kEven);
    const int32_t tiles =
        kernels::kv_buffer::tiles_per_cluster(decode, static_cast<uint32_t>(total));
    const int32_t exact = core::ceil_div(total, ctas);
    ASSERT_GE(tiles, exact) << total << " / " << ctas;
    ASSERT_LE(tiles, exact + (total < 1 << 19 ? 0 : 1 + exact / (1 << 20)))
        << total << " / " << ctas;
    decode.min_tiles = 16;
    ASSERT_EQ(kernels::kv_buffer::tiles_per_cluster(decode, static_cast<uint32_t>(total)),
              std::max(16, tiles));
  }
}

// Rests make the splits of a batch more than its share, by less than one a row tile.
TEST(DecodePlan, splits_of_any_lengths_are_never_more_than_the_grid_has_room_for) {
  using kernels::kv_buffer::num_splits;
  std::mt19937 random(11);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<int32_t> tiles(1 + random() % 40);
    int64_t total = 0;
    for (int32_t& of_sequence : tiles) {
      of_sequence = static_cast<int32_t>(1 + random() % (1U << (1 + random() % 12)));
      total += of_sequence;
    }
    const auto clusters = static_cast<int32_t>(tiles.size() + random() % 500);
    const bool halves = random() % 2 == 0;
    const kernels::DecodeArguments decode = kernels::kv_buffer::decode_arguments(
        kernels::AttentionArguments{}, clusters, 1,
        halves ? DecodeShares::kHalvesUnequal : DecodeShares::kEven);
    const int32_t share = kernels::kv_buffer::tiles_per_cluster(
        decode, static_cast<uint32_t>(total), *std::max_element(tiles.begin(), tiles.end()));
    int64_t splits = 0;
    for (const int32_t of_sequence : tiles) {
      const int32_t own = num_splits(of_sequence, share, arch::SmallDivisor(share));
      // A split takes at most a quarter more than its share, but for rounding.
      ASSERT_LE(core::ceil_div(of_sequence, own), share + core::ceil_div(share, 4));
      splits += own;
    }
    ASSERT_LE(splits, (halves ? 2 : 1) * clusters + std::ssize(tiles));
  }
}

// Half of the mean, but no fewer than min_tiles, from the length on that would be split otherwise.
TEST(DecodePlan, clusters_take_half_where_lengths_differ) {
  using kernels::kv_buffer::tiles_per_cluster;
  const kernels::DecodeArguments decode = kernels::kv_buffer::decode_arguments(
      kernels::AttentionArguments{}, 10, 16, DecodeShares::kHalvesUnequal);
  EXPECT_EQ(tiles_per_cluster(decode, 640), 64);
  EXPECT_EQ(tiles_per_cluster(decode, 640, 79), 64);
  EXPECT_EQ(tiles_per_cluster(decode, 640, 80), 32);
  EXPECT_EQ(tiles_per_cluster(decode, 650, 82), 33);
  EXPECT_EQ(tiles_per_cluster(decode, 240, 100), 16);
  const kernels::DecodeArguments whole = kernels::kv_buffer::decode_arguments(
      kernels::AttentionArguments{}, 10, 16, DecodeShares::kEven);
  EXPECT_EQ(tiles_per_cluster(whole, 640, 80), 64);
}

}  // namespace
}  // namespace pagoda::mha_sm80
