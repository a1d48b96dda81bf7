// The list of findings, and reports of a run without a launch.
#include "emulator/report/reporter.hpp"

#include <gtest/gtest.h>

#include "emulator/machine/scheduler.hpp"

namespace pagoda::emulator {
namespace {

Report finding(ReportKind kind, uint32_t line, std::string message) {
  return {.kind = kind,
          .kernel = "k",
          .who = "CTA 0",
          .primitive = "load",
          .file = "kernel.hpp",
          .line = line,
          .message = std::move(message),
          .other_file = {}};
}

TEST(Findings, one_finding_a_kind_primitive_and_line_is_kept) {
  Findings findings(8);
  findings.add(finding(ReportKind::kRace, 3, "first"));
  findings.add(finding(ReportKind::kRace, 3, "the next lane"));
  findings.add(finding(ReportKind::kBounds, 3, "another kind"));
  findings.add(finding(ReportKind::kRace, 4, "another line"));
  Report store = finding(ReportKind::kRace, 3, "another primitive");
  store.primitive = "store";
  findings.add(store);
  ASSERT_EQ(findings.reports().size(), 4U);
  EXPECT_EQ(findings.reports()[0].message, "first");
}

TEST(Findings, repetitions_do_not_fill_the_list) {
  Findings findings(2);
  for (int i = 0; i < 5; ++i) findings.add(finding(ReportKind::kRace, 3, "same"));
  EXPECT_FALSE(findings.is_full());
  findings.add(finding(ReportKind::kRace, 4, "other"));
  EXPECT_TRUE(findings.is_full());
}

TEST(Reporter, a_report_names_the_kernel_the_line_and_the_schedule) {
  Scheduler scheduler(Mode::kLazy, 7);
  Reporter reporter("demo", {.mode = Mode::kLazy, .seed = 7}, scheduler);
  const Where where = Where::current();
  reporter.report(ReportKind::kProtocol, "launch", where, "no grid");
  const std::vector<Report> reports = reporter.take();
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(to_string(reports[0]),
            "protocol: no grid\n  by launch at reporter_test.cpp:" + std::to_string(where.line()) +
                ", the launch\n  kernel demo, mode lazy, seed 7");
  EXPECT_FALSE(scheduler.is_over());
}

TEST(Reporter, a_race_names_the_other_line_too) {
  Scheduler scheduler(Mode::kRandom, 1);
  Reporter reporter("demo", {}, scheduler);
  const Where earlier = Where::current();
  reporter.report_race("load", Where::current(), "unordered", earlier);
  const std::vector<Report> reports = reporter.take();
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_EQ(reports[0].other_file, "reporter_test.cpp");
  EXPECT_EQ(reports[0].other_line, earlier.line());
}

TEST(Reporter, a_full_list_and_a_failure_end_the_run) {
  Scheduler full(Mode::kRandom, 1), failed(Mode::kRandom, 1);
  Reporter two("demo", {.max_reports = 2}, full), any("demo", {}, failed);
  two.report(ReportKind::kProtocol, "a", Where::current(), "one");
  EXPECT_FALSE(full.is_over());
  two.report(ReportKind::kProtocol, "b", Where::current(), "two");
  EXPECT_TRUE(full.is_over());
  EXPECT_THROW(any.fail(ReportKind::kBounds, "a", Where::current(), "outside"), RunOver);
  EXPECT_TRUE(failed.is_over());
}

}  // namespace
}  // namespace pagoda::emulator
