// Which calls the kernels for decoding serve, and in clusters of how many CTAs. The choices are
// those that were the fastest on an H200 (README.md).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "core/int_math.hpp"
#include "kernels/mha_sm90_decode/family.hpp"
#include "pagoda/mask.hpp"

namespace pagoda::mha_sm90_decode {
namespace {

using kernels::kv_buffer::Launch;
using kernels::kv_buffer::LaunchPlan;
using kernels::kv_buffer::RowKind;

constexpr int32_t kMultiprocessors = 132;  // an H200

struct Call {
  int32_t batch, keys, q_heads = 32, kv_heads = 8, head_dim = 128, tokens = 1;
};

core::Problem problem_of(const Call& call) {
  static const int32_t table = 0;
  core::Problem p;
  p.batch = call.batch;
  p.num_q_heads = call.q_heads;
  p.num_kv_heads = call.kv_heads;
  p.group = call.q_heads / call.kv_heads;
  p.head_dim_qk = p.head_dim_vo = call.head_dim;
  p.has_host_lengths = false;
  p.max_seqlen_q = p.max_seqlen_q_bound = call.tokens;
  p.total_q = int64_t{call.batch} * call.tokens;
  p.max_seqlen_kv = p.max_seqlen_kv_bound = call.keys;
  p.kv_kind = core::KVKind::kPaged;
  p.page_size = 16;
  p.block_table.data = &table;
  p.block_table.row_stride = core::ceil_div(call.keys, 16);
  p.q.dtype = p.k.dtype = p.v.dtype = p.out.dtype = DType::kBF16;
  const int64_t row = int64_t{call.q_heads} * call.head_dim;
  p.q.row_stride = p.out.row_stride = row;
  p.q.sequence_stride = p.out.sequence_stride = call.tokens * row;
  p.q.head_stride = p.out.head_stride = p.k.head_stride = p.v.head_stride = call.head_dim;
  p.k.row_stride = p.v.row_stride = int64_t{call.kv_heads} * call.head_dim;
  p.k.outer_stride = p.v.outer_stride = 16 * p.k.row_stride;
  static const Mask mask = Mask::causal();
  p.mask = mask.nodes();
  return p;
}

const Shape& shape_of(const core::Problem& p) {
  return *std::ranges::find_if(kShapes, [&](const Shape& shape) {
    return p.head_dim_qk <= shape.depth_qk && p.q.dtype == shape.dtype;
  });
}

std::unique_ptr<LaunchPlan> plan_of(const Call& call) {
  const core::Problem p = problem_of(call);
  return Family::plan(shape_of(p), p, kMultiprocessors, {});
}

struct Choice {
  int32_t cluster, clusters;
};
Choice choice_of(const Call& call) {
  const auto plan = plan_of(call);
  EXPECT_EQ(plan->num_launches, 1);
  const Launch& launch = plan->launches[0];
  EXPECT_EQ(launch.rows, call.tokens > 1 ? RowKind::kDecodeTokens : RowKind::kDecode);
  EXPECT_EQ(launch.tile.cluster, kVariants[launch.variant].cluster);
  EXPECT_EQ(launch.ctas % launch.tile.cluster, 0);
  EXPECT_GE(launch.ctas, launch.decode_clusters * launch.tile.cluster);
  return {launch.tile.cluster, launch.decode_clusters};
}

void expect_choice(const Call& call, int32_t cluster, int32_t clusters) {
  const Choice choice = choice_of(call);
  EXPECT_EQ(choice.cluster, cluster) << call.batch << " x " << call.keys;
  EXPECT_EQ(choice.clusters, clusters) << call.batch << " x " << call.keys;
}

TEST(ClusterPlan, a_cluster_for_each_head_of_a_short_sequence) {
  for (const int32_t keys : {500, 1024, 2048}) expect_choice({1, keys}, 8, 8);
}

TEST(ClusterPlan, several_clusters_where_kv_heads_are_few) {
  expect_choice({1, 3000, 8, 1}, 8, 6);
  expect_choice({3, 20'000, 8, 1}, 8, 30);
  expect_choice({1, 8192, 64, 8, 64}, 8, 32);
}

// Four tokens over 128k keys: 32 CTAs a row tile 144.9 us, three clusters of eight 151.6.
TEST(ClusterPlan, as_many_ctas_as_keep_memory_busy_and_as_many_on_each_multiprocessor) {
  expect_choice({1, 131'072, 32, 8, 128, 4}, 1, 256);
  expect_choice({22, 4854, 16, 8}, 1, 352);               // 117.4 us, one CTA each 123.6
  EXPECT_GT(choice_of({2, 8004, 32, 32}).clusters, 240);  // 77.4 us, three CTAs each 81.3
}

// 16 row tiles of 1,024 keys 15.3 us, in clusters 12.7.
TEST(ClusterPlan, a_cluster_for_each_head_of_a_batch_of_few_row_tiles) {
  expect_choice({2, 1024}, 8, 16);
  expect_choice({8, 1024, 16, 2}, 8, 16);
  expect_choice({4, 380, 6, 2, 64}, 8, 8);
  expect_choice({2, 1024, 32, 8, 128, 4}, 8, 16);
}

// Also where these are more CTAs than multiprocessors, but fit the GPU at once: 26 of 1,912 keys of
// one KV head of head dim 64 14.1 us, in clusters 12.7 (of 191 to 1,912 keys 12.1, 11.0), of 128
// 19.3, 17.6 (15.3, 13.7). Five of 700 keys of eight KV heads of 128, 320 CTAs, would take 17.5 us
// for 13.5.
TEST(ClusterPlan, a_cluster_for_each_head_of_as_many_row_tiles_as_fit_at_once) {
  expect_choice({26, 1912, 8, 1, 64}, 8, 26);
  expect_choice({40, 1500, 8, 1, 64}, 8, 40);
  expect_choice({5, 1000, 32, 8, 64}, 8, 40);
  expect_choice({26, 1912, 8, 1}, 8, 26);
  expect_choice({12, 1500, 16, 2}, 8, 24);
  expect_choice({3, 1016}, 8, 24);
  EXPECT_NE(choice_of({4, 1500}).cluster, 8);
  EXPECT_NE(choice_of({5, 700}).cluster, 8);
  EXPECT_NE(choice_of({40, 2000, 8, 1}).cluster, 8);
}

// Eight of 1,000 keys of head dim 64: pairs 13.6 us, four to eight splits 14.7. 16 x 2,048 of head
// dim 32: pairs 21.8, four splits 22.2.
TEST(ClusterPlan, pairs_where_two_splits_fill_the_gpu) {
  expect_choice({8, 1024}, 2, 64);
  expect_choice({8, 1000, 32, 8, 64}, 2, 64);
  expect_choice({16, 2048, 32, 8, 32}, 2, 128);
  expect_choice({32, 700, 16, 2}, 2, 64);
}

// Eight of 8,268 keys: twelve CTAs each 31.5 us, clusters of eight 30.2; of 500 keys and one of
// 15,000 21.1 and 16.4. Sixteen of 64 to 12,000 of one KV head: 27.3 and 25.7.
TEST(ClusterPlan, a_cluster_of_eight_for_each_of_few_row_tiles_of_any_lengths) {
  expect_choice({8, 8268, 16, 2}, 8, 16);
  expect_choice({2, 6000}, 8, 16);
  expect_choice({16, 6000, 8, 1}, 8, 16);
  expect_choice({7, 5000, 28, 4}, 8, 28);             // 31.1 us, nine CTAs each 33.3
  expect_choice({3, 5000}, 8, 24);                    // 28.1 us, single CTAs 29.0
  expect_choice({2, 5260, 12, 12, 128, 16}, 8, 24);   // 29.9 us, 34.5
  EXPECT_NE(choice_of({31, 6000, 8, 1}).cluster, 8);  // 248 CTAs
  expect_choice({3, 4930, 8, 1, 128, 3}, 8, 30);  // six row tiles: 13.3 us, one cluster each 15.8
}

// Where the lengths turn out to differ pairs take half as many keys. 16 x 4,096 keys: 77.0 us, two
// CTAs each 79.1; sixteen of 64 to 12,000 95.3 and 99.9.
TEST(ClusterPlan, pairs_in_batches_of_long_sequences) {
  expect_choice({16, 4096}, 2, 128);
  expect_choice({177, 21'896, 8, 1, 64}, 2, 177);
  EXPECT_EQ(plan_of({16, 4096})->launches[0].shares, kernels::DecodeShares::kHalvesUnequal);
  expect_choice({16, 4096, 32, 8, 128, 4}, 2, 128);  // a merge of more rows takes longer
  EXPECT_EQ(plan_of({16, 4096, 32, 8, 128, 4})->launches[0].shares, kernels::DecodeShares::kEven);
}

TEST(ClusterPlan, no_cluster_where_row_tiles_or_splits_are_many) {
  EXPECT_EQ(choice_of({1, 65'536}).cluster, 1);
  expect_choice({24, 1500, 40, 8}, 1, 192);
  expect_choice({64, 4096}, 1, 512);
  expect_choice({64, 4096, 32, 8, 128, 4}, 1, 512);
}

// 632 CTAs in pairs, of which 396 run at once, 279 us, 316 single ones 255.
TEST(ClusterPlan, no_pairs_in_several_waves_for_a_small_gain) {
  expect_choice({79, 12'172, 64, 4, 64}, 1, 316);
}

// Clusters that do not fit the GPU at once would start when others have ended.
TEST(ClusterPlan, clusters_leave_places_that_gpcs_of_uneven_size_do_not_have) {
  for (const int32_t batch : {1, 2, 3, 5, 7, 12, 20, 30}) {
    for (const int32_t kv_heads : {1, 2, 4, 8}) {
      for (const int32_t keys : {64, 700, 3000, 20'000, 131'072}) {
        const Choice choice = choice_of({batch, keys, 4 * kv_heads, kv_heads});
        if (choice.cluster == 8) {
          EXPECT_LE(choice.cluster * choice.clusters, 240) << batch << " x " << keys;
        }
      }
    }
  }
}

TEST(ClusterPlan, one_cluster_each_needs_no_workspace) {
  EXPECT_LE(plan_of({1, 1024})->workspace_bytes, 2 * core::kWorkspaceAlignment);  // no slot
  EXPECT_EQ(plan_of({1, 1024})->num_split_rows, 32);
  EXPECT_LE(plan_of({2, 1024})->workspace_bytes, 2 * core::kWorkspaceAlignment);
  EXPECT_GT(plan_of({2, 6000})->workspace_bytes, 100'000);  // the lengths may differ
  EXPECT_GT(plan_of({1, 3000, 8, 1})->workspace_bytes, 100'000);
}

// Whatever is served has a plan, and none takes more than 128 MiB.
TEST(ClusterPlan, every_batch_has_a_bounded_workspace) {
  for (const int32_t dim : {64, 96, 128, 192, 256}) {
    for (const int32_t batch : {1, 7, 33, 100, 132, 199, 264, 330, 496, 500, 792, 992}) {
      for (const int32_t keys : {1, 1216, 1217, 2500, 131'072}) {
        for (const int32_t tokens : {1, 4}) {
          const Call call{batch, keys, 32, 8, dim, tokens};
          if (dim > 128 && batch > 496) continue;  // most_decode_row_tiles
          const auto plan = plan_of(call);
          ASSERT_EQ(plan->num_launches, 1);
          EXPECT_LE(plan->workspace_bytes, int64_t{128} << 20)
              << dim << ": " << batch << " x " << keys;
        }
      }
    }
  }
}

TEST(ClusterPlan, few_ctas_get_a_multiprocessor_each) {
  EXPECT_EQ(plan_of({1, 1024})->launches[0].most_ctas_per_sm, 1);
  EXPECT_EQ(plan_of({3, 20'000, 8, 1})->launches[0].most_ctas_per_sm, 0);
}

bool is_served(const core::Problem& p, const Options& options = {}) {
  std::string reason;
  const core::Fit fit = Family::fit(shape_of(p), p, options, &reason);
  EXPECT_EQ(fit != core::Fit::kServes, !reason.empty());
  return fit == core::Fit::kServes;
}

// As many CTAs as whole rows have, or more: each has fewer bytes in flight. 4 x 16,000 keys of
// 12/12 heads of 32 by eight CTAs a row tile 43.6 us, by six 50.5.
TEST(ClusterPlan, narrow_rows_have_kernels_that_read_no_more_than_them) {
  for (const int32_t dim : {8, 40, 64, 72, 96, 120, 128, 136, 192, 248, 256}) {
    const bool is_narrow = dim != 64 && dim != 128 && dim != 256;
    for (const Call& call : {Call{1, 1024, 32, 8, dim}, Call{8, 1024, 32, 8, dim},
                             Call{16, 4096, 32, 8, dim}, Call{16, 4096, 32, 8, dim, 4}}) {
      const Launch launch = plan_of(call)->launches[0];
      EXPECT_EQ(launch.tile.staging, is_narrow ? kernels::kv_buffer::Staging::kAsyncNarrow
                                               : kernels::kv_buffer::Staging::kAsync)
          << dim;
      EXPECT_EQ(launch.tile.depth_qk, dim <= 64 ? 64 : dim <= 128 ? 128 : 256);
      Call whole = call;
      whole.head_dim = launch.tile.depth_qk;
      const Choice of_whole = choice_of(whole);
      EXPECT_GE(launch.tile.cluster * launch.decode_clusters, of_whole.cluster * of_whole.clusters)
          << dim;
      EXPECT_TRUE(is_served(problem_of(call))) << dim;
    }
  }
}

core::Problem fp8_problem_of(const Call& call) {
  core::Problem p = problem_of(call);
  p.k.dtype = p.v.dtype = DType::kF8E4M3;
  return p;
}

// KV tiles of as many bytes as those of 16-bit caches of half the keys: the same CTAs where each
// has one, or where memory is the limit.
TEST(ClusterPlan, fp8_caches_are_divided_as_16_bit_caches_of_as_many_bytes) {
  for (const int32_t dim : {64, 128}) {
    for (const int32_t tokens : {1, 4}) {
      for (const auto& [batch, keys] :
           {std::pair{1, 512}, std::pair{16, 8192}, std::pair{64, 2048}}) {
        const Call half{batch, keys, 32, 8, dim, tokens};
        const core::Problem p = fp8_problem_of({batch, 2 * keys, 32, 8, dim, tokens});
        ASSERT_TRUE(is_served(p)) << dim << " " << tokens;
        const auto plan = Family::plan(shape_of(p), p, kMultiprocessors, {});
        const Launch launch = plan->launches[0];
        EXPECT_EQ(launch.tile.staging, kernels::kv_buffer::Staging::kAsyncFp8);
        const Choice of_half = choice_of(half);
        EXPECT_EQ(launch.tile.cluster, of_half.cluster) << batch << " x " << keys;
        EXPECT_EQ(launch.decode_clusters, of_half.clusters) << batch << " x " << keys;
        EXPECT_EQ(launch.ctas, plan_of(half)->launches[0].ctas) << batch << " x " << keys;
        EXPECT_EQ(launch.shares, plan_of(half)->launches[0].shares) << batch << " x " << keys;
      }
    }
  }
}

// Those of few CTAs take 1.17 us instead of 0.63. us, before, with more CTAs: 1 x 8,192 18.8, 17.4;
// 5 x 2,075, 28/4 heads 18.6, 14.7; 3 x 2,500, 16/16 21.2, 19.9.
TEST(ClusterPlan, fp8_caches_of_a_few_kv_tiles_have_more_ctas) {
  for (const auto& [batch, keys, q_heads, kv_heads] :
       {std::tuple{1, 8192, 32, 8}, std::tuple{5, 2075, 28, 4}, std::tuple{3, 2500, 16, 16}}) {
    const core::Problem p = fp8_problem_of({batch, keys, q_heads, kv_heads});
    const auto plan = Family::plan(shape_of(p), p, kMultiprocessors, {});
    const Call half{batch, (keys + 1) / 2, q_heads, kv_heads};
    const Choice of_half = choice_of(half);
    const Launch launch = plan->launches[0];
    EXPECT_GT(launch.tile.cluster * launch.decode_clusters, of_half.cluster * of_half.clusters)
        << batch << " x " << keys;
  }
}

TEST(ClusterPlan, serves_whole_rows_of_fp8_caches_without_a_window_or_a_soft_cap) {
  EXPECT_TRUE(is_served(fp8_problem_of({1, 1024})));
  EXPECT_TRUE(is_served(fp8_problem_of({1, 1024, 32, 8, 256})));
  EXPECT_FALSE(is_served(fp8_problem_of({1, 1024, 32, 8, 96})));
  EXPECT_FALSE(is_served(fp8_problem_of({1, 1024, 32, 8, 192})));
  core::Problem p = fp8_problem_of({1, 1024});
  p.q.dtype = DType::kF8E4M3;
  EXPECT_TRUE(is_served(p));
  p.q.head_stride += 8;  // heads of Q at multiples of 8 bytes
  EXPECT_FALSE(is_served(p));
  p = problem_of({1, 1024});
  p.q.dtype = DType::kF8E4M3;  // over a cache in bf16
  EXPECT_FALSE(is_served(p));
  p = fp8_problem_of({1, 1024});
  p.score_mod.softcap = 30;
  EXPECT_FALSE(is_served(p));
  p = fp8_problem_of({1, 1024});
  static const Mask window = Mask::window(100, 0);
  p.mask = window.nodes();
  EXPECT_FALSE(is_served(p));
  // Rows, pages and heads at multiples of 8 bytes.
  for (int64_t core::KVView::*stride :
       {&core::KVView::row_stride, &core::KVView::outer_stride, &core::KVView::head_stride}) {
    for (core::KVView core::Problem::*view : {&core::Problem::k, &core::Problem::v}) {
      p = fp8_problem_of({1, 1024});
      p.*view.*stride += 8;
      EXPECT_FALSE(is_served(p));
    }
  }
}

core::Problem latent_problem_of(const Call& call) {
  core::Problem p = problem_of(call);  // V has the address and the strides of K
  p.head_dim_vo = 512;
  return p;
}
constexpr Call latent_call(int32_t batch, int32_t keys, int32_t heads, int32_t tokens = 1) {
  return {batch, keys, heads, 1, 576, tokens};
}

// 16 rows of any tokens and heads are a row tile.
TEST(ClusterPlan, serves_whole_latent_rows) {
  for (const int32_t heads : {8, 16, 20, 128}) {
    for (const int32_t tokens : {1, 4, 16}) {
      const core::Problem p = latent_problem_of(latent_call(1, 1024, heads, tokens));
      EXPECT_TRUE(is_served(p)) << heads << " " << tokens;
      const auto plan = Family::plan(shape_of(p), p, kMultiprocessors, {});
      const int32_t row_tiles =
          heads > 16 ? tokens * core::ceil_div(heads, 16) : core::ceil_div(tokens, 16 / heads);
      const Launch launch = plan->launches[0];
      EXPECT_EQ(launch.tile.staging, kernels::kv_buffer::Staging::kAsyncLatent);
      EXPECT_EQ(launch.decode_clusters % row_tiles, 0) << heads << " " << tokens;
    }
  }
  const core::Problem latent = latent_problem_of(latent_call(1, 1024, 16));
  EXPECT_TRUE(is_served(latent));
  EXPECT_FALSE(is_served(latent_problem_of(latent_call(1, 1024, 16, 17))));
  EXPECT_FALSE(is_served(latent_problem_of(latent_call(1985, 1024, 16))));  // most_decode_row_tiles
  core::Problem p = latent;
  p.head_dim_qk = 552;
  EXPECT_FALSE(is_served(p));
  p = latent;
  p.head_dim_vo = 488;
  EXPECT_FALSE(is_served(p));
  p = latent;
  static const int32_t other = 0;
  p.v.data = const_cast<int32_t*>(&other);  // not in K
  EXPECT_FALSE(is_served(p));
  p = latent;
  p.k.dtype = p.v.dtype = DType::kF8E4M3;
  EXPECT_FALSE(is_served(p));
  p = latent;
  p.score_mod.softcap = 30;
  EXPECT_FALSE(is_served(p));
  p = latent;
  static const Mask window = Mask::window(100, 0);
  p.mask = window.nodes();
  EXPECT_FALSE(is_served(p));
  p = latent;
  p.page_size = 8;
  EXPECT_FALSE(is_served(p));
}

TEST(ClusterPlan, divides_latent_rows_of_every_batch_that_it_serves) {
  for (const int32_t batch : {1, 5, 16, 33, 66, 132, 133, 264, 500, 992, 1984}) {
    for (const int32_t keys : {64, 1000, 30'000}) {
      for (const int32_t heads : {16, 128}) {
        const core::Problem p = latent_problem_of(latent_call(batch, keys, heads));
        EXPECT_EQ(is_served(p), heads == 16 || batch <= 248) << batch;  // most_decode_row_tiles
        if (!is_served(p)) continue;
        const auto plan = Family::plan(shape_of(p), p, kMultiprocessors, {});
        EXPECT_LE(plan->workspace_bytes, int64_t{128} << 20) << batch << " x " << keys;
      }
    }
  }
}

// us: 1 x 1,024 keys of 16 heads 12.0 (clusters of four 15.0), 1 x 1,375 12.4 (one cluster 14.4), 1
// x 8,192 15.9 (sixteen of four CTAs 17.6), 16 x 4,096 40.1 (four CTAs each 39.5), 25 x 5,000 52.5
// (five CTAs each 57.6), 39 x 2,584 49.2 (three CTAs each 51.4), 64 x 4,096 87.7 (single CTAs
// 136.8), 128 x 4,096 153.5 (pairs 160.8), 3 x 650 of 64 heads 13.2 (pairs 20.8).
TEST(ClusterPlan, clusters_of_latent_rows) {
  const auto expect = [](const Call& call, int32_t cluster, int32_t clusters) {
    const core::Problem p = latent_problem_of(call);
    const auto plan = Family::plan(shape_of(p), p, kMultiprocessors, {});
    EXPECT_EQ(plan->launches[0].tile.cluster, cluster) << call.batch << " x " << call.keys;
    EXPECT_EQ(plan->launches[0].decode_clusters, clusters) << call.batch << " x " << call.keys;
  };
  expect(latent_call(1, 1024, 16), 8, 1);
  expect(latent_call(1, 1375, 16), 8, 3);
  expect(latent_call(1, 8192, 16), 8, 8);
  expect(latent_call(16, 4096, 16), 1, 128);
  expect(latent_call(25, 5000, 16), 4, 25);
  expect(latent_call(39, 2584, 16), 2, 39);
  expect(latent_call(64, 4096, 16), 2, 64);
  expect(latent_call(128, 4096, 16), 1, 128);
  expect(latent_call(3, 650, 64), 8, 12);
}

TEST(ClusterPlan, serves_tokens_that_see_all_keys_up_to_their_own) {
  EXPECT_TRUE(is_served(problem_of({1, 1024})));
  EXPECT_TRUE(is_served(problem_of({4, 1024, 32, 8, 64, 4})));
  EXPECT_FALSE(is_served(problem_of({1, 1024, 32, 1})));  // 32 rows of a token
  EXPECT_FALSE(is_served(problem_of({993, 1024})));       // most_decode_row_tiles
  EXPECT_FALSE(is_served(problem_of({497, 1024, 32, 8, 256})));

  core::Problem p = problem_of({1, 1024});
  p.block_table = {};  // CSR
  EXPECT_TRUE(is_served(p));

  p = problem_of({2, 1024, 32, 8, 128, 4});
  p.q.sequence_stride += 8;  // tokens have no one stride
  EXPECT_FALSE(is_served(p));

  p = problem_of({1, 1024});
  const Mask window = Mask::window(100, 0), chunks = Mask::chunked(100);
  p.mask = window.nodes();
  EXPECT_TRUE(is_served(p));
  p.mask = chunks.nodes();
  EXPECT_FALSE(is_served(p));
  p = problem_of({1, 1024});
  p.score_mod.softcap = 30;
  EXPECT_TRUE(is_served(p));
  const float slope = 0.5F;
  p.score_mod.alibi_slopes = {&slope, 1};
  EXPECT_FALSE(is_served(p));
  p = problem_of({1, 1024});
  p.page_size = 8;
  EXPECT_FALSE(is_served(p));
}

// Up to four row tiles of a KV head. Whether they are faster than packed rows is asked by mha_sm90
// (ranking_test.cpp).
TEST(ClusterPlan, serves_more_rows_than_a_row_tile) {
  EXPECT_TRUE(is_served(problem_of({1, 5000, 8, 1, 128, 4})));
  EXPECT_TRUE(is_served(problem_of({1, 1000, 32, 8, 128, 8})));
  EXPECT_TRUE(is_served(problem_of({1, 20'000, 32, 8, 128, 5})));
  EXPECT_TRUE(is_served(problem_of({1, 716, 8, 2, 64, 16})));    // four row tiles
  EXPECT_FALSE(is_served(problem_of({1, 500, 8, 1, 128, 9})));   // five
  EXPECT_FALSE(is_served(problem_of({1, 500, 4, 4, 128, 17})));  // prefill tiles are as good
  const auto plan = plan_of({1, 5000, 8, 1, 128, 4});
  EXPECT_EQ(plan->launches[0].rows, RowKind::kDecodeTokens);
  EXPECT_EQ(plan->launches[0].decode_clusters % 2, 0);  // of two row tiles
}

// A KV tile of head dim 256 is two of head dim 128: two CTAs with as many bytes in flight fill a
// multiprocessor. 32/8 heads, 1 x 1k 17.5 us became 11.3; 8/1, 1 x 30,000 41.3 to 21.7.
TEST(ClusterPlan, head_dim_256) {
  expect_choice({1, 1024, 32, 8, 256}, 8, 8);
  expect_choice({16, 4096, 32, 8, 256, 4}, 2, 128);
  EXPECT_EQ(choice_of({1, 30'000, 8, 1, 256}).cluster, 8);
  EXPECT_EQ(plan_of({33, 569, 24, 8, 256})->launches[0].most_ctas_per_sm, 2);
  EXPECT_TRUE(is_served(problem_of({1, 1000, 32, 8, 256, 8})));
  EXPECT_FALSE(is_served(problem_of({1, 500, 8, 1, 256, 9})));
}

// Of 128k keys, as many as rows that a page may begin at hold.
TEST(ClusterPlan, windows_are_divided_as_so_many_keys) {
  for (const Call& call : {Call{1, 131'072}, Call{24, 131'072}, Call{64, 131'072, 64, 8, 64},
                           Call{4, 131'072, 32, 8, 128, 4}}) {
    core::Problem p = problem_of(call);
    const Mask window = Mask::window(1023, 0);
    p.mask = window.nodes();
    const Launch launch = Family::plan(shape_of(p), p, kMultiprocessors, {})->launches[0];
    EXPECT_EQ(launch.rows, RowKind::kDecodeGeneral);
    Call shorter = call;
    shorter.keys = 1024 + call.tokens - 1 + 15;
    const Choice choice = choice_of(shorter);
    EXPECT_EQ(launch.tile.cluster, choice.cluster);
    EXPECT_EQ(launch.decode_clusters, choice.clusters);
  }
}

// A window that no sequence has as many keys as, and one that is open.
TEST(ClusterPlan, windows_of_all_keys_are_none) {
  core::Problem p = problem_of({1, 1024});
  for (const int64_t left : {int64_t{1023}, int64_t{5000}, int64_t{-1}}) {
    const Mask window = Mask::window(left, 0);
    p.mask = window.nodes();
    EXPECT_EQ(Family::plan(shape_of(p), p, kMultiprocessors, {})->launches[0].rows,
              RowKind::kDecode);
  }
}

TEST(ClusterPlan, leaves_asked_schedules_to_others) {
  Options options;
  options.schedule = Schedule::kStreamK;
  EXPECT_FALSE(is_served(problem_of({1, 1024}), options));
  options = {};
  options.num_kv_splits = 2;
  EXPECT_FALSE(is_served(problem_of({1, 1024}), options));
  options = {};
  options.is_batch_invariant = true;
  EXPECT_FALSE(is_served(problem_of({1, 1024}), options));
}

}  // namespace
}  // namespace pagoda::mha_sm90_decode
