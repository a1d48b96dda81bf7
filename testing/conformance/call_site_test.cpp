// The table on the fake device, whose memory the host can't access: every case that the host runs
// must pass, and faults of the device must be detected.
#include "testing/conformance/call_site.hpp"

#include <cstdlib>
#include <gtest/gtest.h>
#include <set>

#include "testing/conformance/runner.hpp"
#include "testing/mirror/fake_device.hpp"

namespace pagoda::conformance {
namespace {

class OnDevice : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(mirror::register_fake_device()); }
  void TearDown() override { mirror::set_fake_fault({}); }

  // Checked mode: the back end checks every pointer.
  static Target target() {
    Target target = targets_of(mirror::kFakeDevice).front();
    target.options.checks_indices = true;
    return target;
  }
  static Outcome run(const std::string& name) {
    CaseRunner runner(*select_cases(name).front());
    return runner.run(target().options, target().effort);
  }
};

// A sixth of the cases; all among the nightly tests, in two halves side by side.
TEST_F(OnDevice, every_case_passes_but_those_that_call_the_host) {
  const char* half = std::getenv("PAGODA_NIGHTLY_HALF");  // 0 or 1
  const size_t first = half != nullptr && *half == '1' ? 1 : 0;
  const size_t every = half != nullptr ? 2 : 6;
  std::vector<const Case*> cases;
  for (size_t i = first; i < all_cases().size(); i += every) {
    const Case& c = all_cases()[i];
    const bool is_slow = c.demand == Demand::kBatchInvariant && c.q_dtype != DType::kBF16;
    if (!is_slow) cases.push_back(&c);
  }
  const std::vector<Target> targets{target()};
  const RunSummary summary = run_cases(cases, targets);
  EXPECT_EQ(summary.failed, 0);
  EXPECT_GE(summary.passed * every, 400U);
  for (const CaseReport& report : summary.not_passed) {
    const std::string text = report.test_case->name + ": " + report.outcome.message;
    EXPECT_EQ(report.outcome.verdict, Verdict::kSkipped) << text;
    EXPECT_NE(text.find("the host's functions"), std::string::npos) << text;
  }
}

TEST_F(OnDevice, most_cases_promise_their_maxima_and_some_do_not) {
  const std::vector<Case>& all = all_cases();
  const auto with_maxima = std::count_if(all.begin(), all.end(), passes_maxima);
  EXPECT_GT(with_maxima, std::ssize(all) / 2);
  EXPECT_LT(with_maxima, std::ssize(all) * 9 / 10);
}

TEST_F(OnDevice, a_row_that_is_not_written_fails) {
  mirror::set_fake_fault([](const core::Problem& p, int64_t) {
    auto* lse = static_cast<float*>(p.lse.data);
    lse[p.row_offset(p.lse, 0, 0, 0)] = std::numeric_limits<float>::quiet_NaN();
  });
  EXPECT_NE(run("paged16_gqa2_hd64_bf16_causal_mixed").message.find("lse"), std::string::npos);
}

TEST_F(OnDevice, a_write_beside_an_output_fails) {
  mirror::set_fake_fault(
      [](const core::Problem& p, int64_t) { static_cast<float*>(p.lse.data)[-1] = 0; });
  EXPECT_NE(run("paged16_gqa2_hd64_bf16_causal_mixed").message.find("element -1 outside"),
            std::string::npos);
}

TEST_F(OnDevice, a_write_into_an_index_array_fails) {
  mirror::set_fake_fault(
      [](const core::Problem& p, int64_t) { const_cast<int32_t&>(p.cu_seqlens_q[0]) = 7; });
  EXPECT_NE(run("paged16_gqa2_hd64_bf16_causal_mixed").message.find("an input was written"),
            std::string::npos);
}

TEST_F(OnDevice, other_bits_in_a_later_run_fail) {
  mirror::set_fake_fault([](const core::Problem& p, int64_t run) {
    if (run == 9) static_cast<float*>(p.lse.data)[p.row_offset(p.lse, 0, 0, 0)] += 1e-6F;
  });
  EXPECT_EQ(run("repeat16").message, "run 9 gave other bits");
}

TEST_F(OnDevice, a_device_without_room_is_a_skip_with_a_reason) {
  mirror::set_fake_memory_limit(4096);
  const Outcome outcome = run("paged16_gqa2_hd64_bf16_causal_mixed");
  mirror::set_fake_memory_limit(0);
  EXPECT_EQ(outcome.verdict, Verdict::kSkipped);
  EXPECT_NE(outcome.message.find("not enough memory on the device"), std::string::npos);
}

TEST_F(OnDevice, a_fault_of_the_device_is_a_failure_in_its_words) {
  mirror::set_fake_fault([](const core::Problem&, int64_t) {
    throw std::runtime_error("an illegal memory access was encountered");
  });
  const Outcome outcome = run("paged16_gqa2_hd64_bf16_causal_mixed");
  EXPECT_EQ(outcome.verdict, Verdict::kFailed);
  EXPECT_NE(outcome.message.find("illegal memory access"), std::string::npos);
}

TEST(Effort, of_an_emulator_is_bounded_and_says_so) {
  const Effort effort = effort_for("emu:sm90");
  EXPECT_GT(effort.max_multiply_adds, 0);
  EXPECT_EQ(effort.worker_counts.size(), 1U);
  EXPECT_EQ(effort_for("cpu").max_multiply_adds, 0);
  CaseRunner runner(*select_cases("decode9001").front());
  const Outcome outcome = runner.run(Options{.backend = "reference"}, {.max_multiply_adds = 1e6});
  EXPECT_EQ(outcome.verdict, Verdict::kSkipped);
  EXPECT_NE(outcome.message.find("million multiply-adds"), std::string::npos);
}

TEST(RunCases, several_jobs_find_what_one_finds) {
  const std::vector<const Case*> cases = select_cases("hd64");
  const std::vector<Target> targets = targets_of("reference");
  int32_t calls = 0;
  std::set<std::string> seen;
  const RunSummary summary = run_cases(
      cases, targets,
      [&](const CaseReport& report, int32_t done, int32_t) {
        EXPECT_EQ(done, ++calls);
        seen.insert(report.test_case->name);
        return true;
      },
      3);
  EXPECT_EQ(summary.passed + summary.skipped, std::ssize(cases));
  EXPECT_GT(summary.passed, summary.skipped);
  EXPECT_EQ(seen.size(), cases.size());
}

}  // namespace
}  // namespace pagoda::conformance
