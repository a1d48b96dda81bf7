// The cases of prompts beside decoding have the launches on Hopper that they were made for: their
// lengths follow bounds of its plan, which may move.
#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <vector>

#include "engine/validate.hpp"
#include "kernels/mha_sm90/launch_plan.hpp"
#include "testing/conformance/case_list.hpp"
#include "testing/conformance/problem_data.hpp"

namespace pagoda::conformance {
namespace {

std::string launches_of(const core::Problem& p, int32_t num_sms) {
  const auto shape = std::ranges::find_if(mha_sm90::kShapes, [&p](const mha_sm90::Shape& each) {
    return mha_sm90::fit(each, p, {}, nullptr) == core::Fit::kServes;
  });
  const auto plan = mha_sm90::make_plan(*shape, p, num_sms, {});
  if (plan->num_launches > 1) return "packed rows, tokens";
  const mha_sm90::Launch& launch = plan->launches[0];
  if (launch.is_mixed()) return "mixed";
  return launch.rows == mha_sm90::RowKind::kPacked ? "packed rows" : "tokens";
}

std::string intended_launches(const Case& c) {
  if (c.tag == "beside_apart") return "packed rows, tokens";
  return c.tag == "beside_little" || c.tag.starts_with("unequal") ? "tokens" : "mixed";
}

TEST(MixedCases, have_the_launches_that_they_were_made_for) {
  CaseList list;
  add_mixed(list);
  std::map<std::string, int32_t> counts;
  for (const Case& c : list.take()) {
    ProblemData data(c, false);
    Result<core::Problem> problem = engine::validate(data.attention(), {});
    ASSERT_TRUE(problem) << c.name << ": " << problem.status().message();
    // Of an H200, or of the emulator as it is registered.
    const std::vector<int32_t> gpus =
        c.num_sms != 0 ? std::vector{c.num_sms} : std::vector<int32_t>{3, 132};
    for (const int32_t num_sms : gpus) {
      for (const bool has_host_lengths : {true, false}) {
        problem->has_host_lengths = has_host_lengths;
        const std::string launches = launches_of(*problem, num_sms);
        EXPECT_EQ(launches, intended_launches(c)) << c.name << " on " << num_sms;
        ++counts[launches];
      }
    }
  }
  EXPECT_EQ(counts.size(), 3U);
}

}  // namespace
}  // namespace pagoda::conformance
