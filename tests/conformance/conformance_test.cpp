// The whole table on every back end of this build, on the CPU's at every instruction-set level.
#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "pagoda/backend.hpp"
#include "runner.hpp"

namespace pagoda::conformance {
namespace {

TEST(ConformanceTable, has_at_least_400_cases) { EXPECT_GE(all_cases().size(), 400U); }

class Conformance : public testing::TestWithParam<Target> {};

TEST_P(Conformance, every_case_agrees_with_the_reference) {
  const std::vector<const Case*> cases = select_cases("");
  const Target targets[] = {GetParam()};
  const RunSummary summary = run_cases(cases, targets);
  for (const CaseReport& report : summary.not_passed) {
    ADD_FAILURE() << report.test_case->name << " (" << report.outcome.kernel
                  << "): " << report.outcome.message;
  }
  // Neither of these back ends may decline a case.
  EXPECT_EQ(summary.passed, static_cast<int32_t>(cases.size()));
}

std::vector<Target> all_targets() {
  std::vector<Target> targets;
  for (const BackendInfo& backend : backends()) {
    if (!backend.is_available || kernels(backend.name).empty()) continue;
    for (Target& target : targets_of(backend.name)) targets.push_back(std::move(target));
  }
  return targets;
}

std::string test_name(const testing::TestParamInfo<Target>& target) {
  std::string name = target.param.label;
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Targets, Conformance, testing::ValuesIn(all_targets()), test_name);

}  // namespace
}  // namespace pagoda::conformance
