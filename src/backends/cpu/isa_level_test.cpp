// Which level is preferred. The detected level depends on the machine and is not tested.
#include "backends/cpu/isa_level.hpp"

#include <gtest/gtest.h>

#include "pagoda/backend.hpp"

namespace pagoda::cpu {
namespace {

TEST(IsaLevel, intel_without_amx_prefers_fp32_unless_the_bf16_level_is_named) {
  constexpr auto kBf16 = IsaLevel::kAvx512Bf16;
  EXPECT_TRUE(is_f32_faster_than_bf16_dot(kBf16, IsaLevel::kAmx, true));
  EXPECT_FALSE(is_f32_faster_than_bf16_dot(kBf16, kBf16, true));
  EXPECT_FALSE(is_f32_faster_than_bf16_dot(kBf16, IsaLevel::kAmx, false));
  EXPECT_FALSE(is_f32_faster_than_bf16_dot(IsaLevel::kAmx, IsaLevel::kAmx, true));
  EXPECT_FALSE(is_f32_faster_than_bf16_dot(IsaLevel::kAmx, kBf16, true));
}

TEST(IsaLevel, a_cap_holds_and_an_unknown_one_is_an_error) {
  const std::string before = cpu_isa_level();
  ASSERT_TRUE(set_cpu_isa_level("scalar").ok());
  EXPECT_EQ(active_isa_level(), IsaLevel::kScalar);
  const Status status = set_cpu_isa_level("sse9");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "level is \"sse9\"; must be scalar, avx2, avx512, avx512_bf16 or amx");
  EXPECT_EQ(active_isa_level(), IsaLevel::kScalar);
  EXPECT_TRUE(check_cpu_isa().ok());
  EXPECT_TRUE(set_cpu_isa_level(before).ok());
}

}  // namespace
}  // namespace pagoda::cpu
