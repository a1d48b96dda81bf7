// A plan of a call whose V is inside K serves no call with another V, and the other way round:
// kernels for latent attention read V from K.
#include "core/v_inside_k.hpp"

#include <gtest/gtest.h>

#include "engine/signature.hpp"

namespace pagoda::engine {
namespace {

core::Problem problem_of(int32_t head_dim_qk, const void* v) {
  static const float k = 0;
  core::Problem p;
  p.head_dim_qk = head_dim_qk;
  p.head_dim_vo = head_dim_qk - 64;
  p.k.data = &k;
  p.v.data = v == nullptr ? &k : v;
  p.k.row_stride = p.v.row_stride = head_dim_qk;
  return p;
}

TEST(VInsideK, is_a_property_of_calls_with_large_head_dims) {
  static const float other = 0;
  const core::Problem inside = problem_of(576, nullptr), separate = problem_of(576, &other);
  EXPECT_TRUE(core::is_v_inside_k(inside));
  EXPECT_FALSE(core::is_v_inside_k(separate));
  const Status status = Signature(inside).match(separate);
  EXPECT_EQ(status.field(), "kv.v.is_inside_k") << status.message();
  EXPECT_FALSE(Signature(separate).match(inside));
  EXPECT_TRUE(Signature(inside).match(inside));
  EXPECT_TRUE(Signature(problem_of(128, nullptr)).match(problem_of(128, &other)));
}

TEST(VInsideK, needs_the_strides_of_k) {
  core::Problem p = problem_of(576, nullptr);
  p.v.row_stride = 512;
  EXPECT_FALSE(core::is_v_inside_k(p));
}

}  // namespace
}  // namespace pagoda::engine
