// plan(), run(), explain() on small valid calls; wrong ones are in tests/api.
#include "engine/plan.hpp"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "pagoda/pagoda.hpp"

namespace pagoda {
namespace {

// Two sequences of a padded fp32 call over a dense cache: 4 query heads on 2 key heads.
struct Call {
  static constexpr int64_t kBatch = 2, kRows = 3, kHeads = 4, kKeys = 10, kKvHeads = 2, kDim = 16;

  explicit Call(uint32_t seed = 1) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    for (auto* values : {&q, &k, &v}) {
      values->resize(values == &q ? kBatch * kRows * kHeads * kDim
                                  : kBatch * kKeys * kKvHeads * kDim);
      for (float& x : *values) x = normal(random);
    }
    out.assign(q.size(), NAN);
    lse.assign(kBatch * kRows * kHeads, NAN);
    attention.q = ConstTensor::contiguous(q.data(), DType::kF32, {kBatch, kRows, kHeads, kDim});
    attention.out = Tensor::contiguous(out.data(), DType::kF32, {kBatch, kRows, kHeads, kDim});
    attention.lse = Tensor::contiguous(lse.data(), DType::kF32, {kBatch, kRows, kHeads});
    attention.kv = DenseKV{
        .k = ConstTensor::contiguous(k.data(), DType::kF32, {kBatch, kKeys, kKvHeads, kDim}),
        .v = ConstTensor::contiguous(v.data(), DType::kF32, {kBatch, kKeys, kKvHeads, kDim}),
        .seqlens_kv = lengths};
    attention.mask = Mask::causal();
  }

  std::vector<float> q, k, v, out, lse;
  std::vector<int32_t> lengths{10, 7};
  Attention attention;
};

const Options kReference{.backend = "reference"};

TEST(Plan, one_call_gives_what_plan_and_run_give) {
  Call once, twice;
  ASSERT_TRUE(run(once.attention, kReference));
  const Result<Plan> planned = plan(twice.attention, kReference);
  ASSERT_TRUE(planned) << planned.status().message();
  ASSERT_TRUE(run(*planned, twice.attention, {}));
  for (size_t i = 0; i < once.out.size(); ++i) {
    ASSERT_FALSE(std::isnan(once.out[i]));
    ASSERT_EQ(once.out[i], twice.out[i]);
  }
}

TEST(Plan, writes_nothing) {
  Call call;
  ASSERT_TRUE(plan(call.attention, kReference));
  for (const float x : call.out) ASSERT_TRUE(std::isnan(x));
  for (const float x : call.lse) ASSERT_TRUE(std::isnan(x));
}

TEST(Plan, serves_another_call_of_the_same_shapes) {
  Call first(1), second(2), alone(2);
  const Result<Plan> planned = plan(first.attention, kReference);
  ASSERT_TRUE(planned);
  ASSERT_TRUE(run(*planned, second.attention, {}));
  ASSERT_TRUE(run(alone.attention, kReference));
  EXPECT_EQ(second.out, alone.out);
}

TEST(Plan, knows_its_kernel_and_its_cost) {
  Call call;
  const Result<Plan> planned = plan(call.attention, kReference);
  ASSERT_TRUE(planned);
  EXPECT_EQ(planned->kernel(), "reference");
  EXPECT_EQ(planned->workspace_bytes(), 0);
  const double pairs = (8 + 9 + 10) + (5 + 6 + 7);
  EXPECT_EQ(planned->flops(), 2 * pairs * Call::kHeads * (Call::kDim + Call::kDim));
  EXPECT_EQ(planned->kv_bytes(), (10 + 7) * Call::kKvHeads * 2 * Call::kDim * 4);
}

TEST(Plan, explain_selects_what_plan_selects) {
  Call call;
  const auto infos = explain(call.attention, kReference);
  ASSERT_TRUE(infos);
  ASSERT_EQ(infos->size(), kernels("reference").size());
  EXPECT_TRUE(infos->front().is_selected);
  EXPECT_TRUE(infos->front().can_run);
  EXPECT_EQ(infos->front().reason, "");
  EXPECT_EQ(infos->front().name, plan(call.attention, kReference)->kernel());
}

TEST(Plan, run_inside_a_functor_of_run_is_served) {
  Call inner, outer;
  static Attention* nested = &inner.attention;
  outer.attention.score_mod.functor = [](void*, float score, int32_t, int32_t, int64_t, int64_t) {
    EXPECT_TRUE(run(*nested, Options{.backend = "reference"}));
    return score;
  };
  Call inner_alone, outer_alone;
  outer_alone.attention.score_mod.functor = [](void*, float score, int32_t, int32_t, int64_t,
                                               int64_t) { return score; };
  ASSERT_TRUE(run(outer.attention, kReference));
  ASSERT_TRUE(run(outer_alone.attention, kReference));
  ASSERT_TRUE(run(inner_alone.attention, kReference));
  EXPECT_EQ(outer.out, outer_alone.out);
  EXPECT_EQ(inner.out, inner_alone.out);
}

TEST(Plan, a_throwing_functor_becomes_a_status) {
  Call call;
  call.attention.score_mod.functor = [](void*, float, int32_t, int32_t, int64_t, int64_t) -> float {
    throw std::runtime_error("no score today");
  };
  const Status status = run(call.attention, kReference);
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_NE(status.message().find("no score today"), std::string::npos);
}

}  // namespace
}  // namespace pagoda
