// The whole table on every back end of this build, on the CPU's at every instruction-set level.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "pagoda/backend.hpp"
#include "testing/conformance/runner.hpp"

namespace pagoda::conformance {
namespace {

TEST(ConformanceTable, has_at_least_400_cases) { EXPECT_GE(all_cases().size(), 400U); }

// All back ends with kernels in this build; for the CPU all ISA levels of this machine.
std::vector<Target> all_targets() {
  std::vector<Target> targets;
  for (const BackendInfo& backend : backends()) {
    if (!backend.is_available || kernels(backend.name).empty()) continue;
    if (backend.memory != DeviceType::kCpu) continue;  // the table's data is on the host
    for (Target& target : targets_of(backend.name)) targets.push_back(std::move(target));
  }
  return targets;
}

TEST(ConformanceTable, runs_on_the_reference_and_on_every_level_of_the_cpu) {
  std::vector<std::string> labels;
  for (const Target& target : all_targets()) labels.push_back(target.label);
  std::vector<std::string> expected;
  for (const std::string& level : cpu_isa_levels()) expected.push_back("cpu:" + level);
  expected.emplace_back("reference");
  EXPECT_THAT(labels, testing::IsSupersetOf(expected));
}

// Host back ends have no schedules, and the reference splits no keys: schedule and num_kv_splits
// are for the other cases of a target to show.
bool may_be_skipped(const Case& c) {
  return c.schedule != Schedule::kAutomatic || c.num_kv_splits > 1;
}

// A slice of the table, so that slices can run side by side.
class Slice : public testing::TestWithParam<int32_t> {};
constexpr int32_t kSlices = 8;

TEST_P(Slice, every_case_agrees_with_the_reference_on_every_target) {
  std::vector<const Case*> cases;
  const std::vector<Case>& all = all_cases();
  for (auto i = static_cast<size_t>(GetParam()); i < all.size(); i += kSlices) {
    cases.push_back(&all[i]);
  }
  const std::vector<Target> targets = all_targets();
  ASSERT_FALSE(targets.empty());
  const RunSummary summary = run_cases(cases, targets);
  int32_t skipped = 0;
  for (const CaseReport& report : summary.not_passed) {
    if (report.outcome.verdict == Verdict::kSkipped && may_be_skipped(*report.test_case)) {
      ++skipped;
      continue;
    }
    ADD_FAILURE() << report.test_case->name << " on " << report.target << " ("
                  << report.outcome.kernel << "): " << report.outcome.message;
  }
  // No target may skip another case.
  EXPECT_EQ(summary.passed + skipped, static_cast<int32_t>(cases.size() * targets.size()));
}

INSTANTIATE_TEST_SUITE_P(Table, Slice, testing::Range(0, kSlices));

}  // namespace
}  // namespace pagoda::conformance
