// Every bad call is rejected by every entry point, with the field named and nothing written.
#include "bad_call.hpp"

#include <gtest/gtest.h>
#include <set>
#include <string>

namespace pagoda::test {
namespace {

class BadCalls : public testing::TestWithParam<BadCall> {};

void expect_complaint(const Status& status, const BadCall& bad, const char* function) {
  EXPECT_EQ(status.code(), bad.code) << function << ": " << status.message();
  EXPECT_EQ(status.field(), bad.field) << function << ": " << status.message();
  EXPECT_EQ(status.message().rfind(bad.field, 0), 0U) << function << ": " << status.message();
  EXPECT_NE(status.message().find(bad.fragment), std::string::npos)
      << function << ": " << status.message();
}

TEST_P(BadCalls, is_rejected_with_its_field_named_and_nothing_written) {
  const BadCall& bad = GetParam();
  ValidCall valid(bad.base);
  const Result<Plan> planned = plan(valid.a, valid.options);
  ASSERT_TRUE(planned) << planned.status().message();

  ValidCall call(bad.base);
  bad.spoil(call);
  expect_complaint(plan(call.a, call.options).status(), bad, "plan");
  expect_complaint(explain(call.a, call.options).status(), bad, "explain");
  expect_complaint(run(call.a, call.options), bad, "run");
  EXPECT_TRUE(call.outputs_are_untouched());
}

INSTANTIATE_TEST_SUITE_P(Queries, BadCalls, testing::ValuesIn(bad_queries()),
                         [](const auto& row) { return row.param.name; });
INSTANTIATE_TEST_SUITE_P(Caches, BadCalls, testing::ValuesIn(bad_caches()),
                         [](const auto& row) { return row.param.name; });
INSTANTIATE_TEST_SUITE_P(PageTables, BadCalls, testing::ValuesIn(bad_page_tables()),
                         [](const auto& row) { return row.param.name; });
INSTANTIATE_TEST_SUITE_P(Outputs, BadCalls, testing::ValuesIn(bad_outputs()),
                         [](const auto& row) { return row.param.name; });
INSTANTIATE_TEST_SUITE_P(Scores, BadCalls, testing::ValuesIn(bad_scores()),
                         [](const auto& row) { return row.param.name; });
INSTANTIATE_TEST_SUITE_P(Masks, BadCalls, testing::ValuesIn(bad_masks()),
                         [](const auto& row) { return row.param.name; });
INSTANTIATE_TEST_SUITE_P(Options, BadCalls, testing::ValuesIn(bad_options()),
                         [](const auto& row) { return row.param.name; });

TEST(ValidCalls, every_base_runs_and_writes) {
  for (const Base base : {Base::kDense, Base::kRagged, Base::kBlockTable, Base::kCsr, Base::kFp8}) {
    ValidCall call(base);
    const Status status = run(call.a, call.options);
    EXPECT_TRUE(status) << status.message();
    EXPECT_FALSE(call.outputs_are_untouched());
  }
}

// The same invalid call in run(plan, ...) after planning a valid one: run() rejects it, too. Page
// ids and options are checked by plan() only.
TEST(BadCallTable, is_rejected_by_run_with_a_plan_too) {
  for (const auto rows :
       {bad_queries(), bad_caches(), bad_page_tables(), bad_outputs(), bad_scores(), bad_masks()}) {
    for (const BadCall& bad : rows) {
      if (std::string(bad.name).find("page_id") != std::string::npos) continue;
      SCOPED_TRACE(bad.name);
      ValidCall call(bad.base);
      const Result<Plan> planned = plan(call.a, call.options);
      ASSERT_TRUE(planned);
      bad.spoil(call);
      expect_complaint(run(*planned, call.a, {}), bad, "run(plan)");
      EXPECT_TRUE(call.outputs_are_untouched());
    }
  }
}

TEST(BadCallTable, has_at_least_100_distinct_rows) {
  std::set<std::string> names, complaints;
  for (const auto rows : {bad_queries(), bad_caches(), bad_page_tables(), bad_outputs(),
                          bad_scores(), bad_masks(), bad_options()}) {
    for (const BadCall& bad : rows) {
      EXPECT_TRUE(names.insert(bad.name).second) << bad.name;
      complaints.insert(std::string(bad.field) + "\n" + bad.fragment);
    }
  }
  EXPECT_GE(names.size(), 100U);
  EXPECT_GE(complaints.size(), 100U);
}

}  // namespace
}  // namespace pagoda::test
