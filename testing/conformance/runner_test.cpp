// The runner must detect errors: each test introduces one error into a correct result.
#include "testing/conformance/runner.hpp"

#include <gtest/gtest.h>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "testing/oracle/naive.hpp"

namespace pagoda::conformance {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
const Options kReference{.backend = "reference"};

const Case& case_with_gaps() {
  for (const Case& c : all_cases()) {
    if (c.q_dtype == DType::kF32 && c.is_q_ragged && c.outputs_have_gaps && c.wants_statistics)
      return c;
  }
  ADD_FAILURE() << "no case with gaps in the table";
  return all_cases().front();
}

// A runner whose outputs are correct at first.
class RunnerTest : public testing::Test {
 protected:
  void SetUp() override {
    const Outcome outcome = runner_.run(kReference);
    ASSERT_EQ(outcome.verdict, Verdict::kPassed) << outcome.message;
  }
  void expect_failure(const std::string& text) {
    const Outcome outcome = runner_.judge();
    EXPECT_EQ(outcome.verdict, Verdict::kFailed);
    EXPECT_NE(outcome.message.find(text), std::string::npos) << outcome.message;
  }
  CaseRunner runner_{case_with_gaps()};
};

TEST_F(RunnerTest, a_slightly_wrong_element_fails) {
  OutputTensor& out = runner_.data().mutable_out();
  out.set({3, 1, 2}, out.at({3, 1, 2}) + 1e-5F);
  expect_failure("out[2] of sequence 0, row 3, head 1");
}

TEST_F(RunnerTest, one_nan_fails) {
  runner_.data().mutable_out().set({0, 0, 0}, kNan);
  expect_failure("out[0] of sequence 0, row 0, head 0");
}

TEST_F(RunnerTest, a_wrong_lse_fails) {
  OutputTensor& lse = runner_.data().mutable_lse();
  lse.set({12, 5}, lse.at({12, 5}) + 1e-4F);
  expect_failure("lse of sequence 1, row 0, head 5");
}

TEST_F(RunnerTest, something_else_than_minus_infinity_fails) {
  const auto last = runner_.data().attention().lse.shape[0] - 1;  // a sequence without keys
  runner_.data().mutable_lse().set({last, 0}, -1e30F);
  expect_failure("lse of");
}

TEST_F(RunnerTest, a_write_into_a_gap_fails) {
  OutputTensor& out = runner_.data().mutable_out();
  out.set({0, 0, out.tensor().shape[2]}, 0);
  expect_failure("outside the tensor");
}

TEST_F(RunnerTest, a_write_before_or_after_the_tensor_fails) {
  OutputTensor& lse = runner_.data().mutable_lse();
  lse.set({0, -1}, 0);
  expect_failure("lse: element -1 outside the tensor");
  SetUp();
  lse.set({lse.tensor().shape[0], 0}, 0);
  expect_failure("outside the tensor");
}

TEST_F(RunnerTest, a_write_into_an_input_fails) {
  runner_.data().touch_input();
  expect_failure("an input was written");
}

TEST_F(RunnerTest, an_unwritten_output_fails) {
  runner_.data().poison_outputs();
  expect_failure("nan");
}

// A case of every type, with the results of a naive kernel of its precision in the outputs.
class NaiveResults {
 public:
  explicit NaiveResults(DType dtype) : case_(case_of(dtype)), runner_(case_) {
    EXPECT_EQ(runner_.run(kReference).verdict, Verdict::kPassed);
    const core::Problem& p = runner_.data().canonical();
    const auto heads = static_cast<size_t>(case_.q_heads);
    std::vector<float> out(heads * static_cast<size_t>(case_.dim_vo)), lse(heads), row_max(heads);
    int64_t at = 0;
    for (int32_t b = 0; b < p.batch; ++b) {
      for (int32_t row = 0; row < p.seqlen_q(b); ++row, ++at) {
        oracle::naive_row(p, {case_.q_dtype, case_.out_dtype()}, b, row, out.data(), lse.data(),
                          row_max.data());
        for (int32_t h = 0; h < case_.q_heads; ++h) {
          if (case_.wants_statistics) {
            runner_.data().mutable_lse().set({at, h}, lse[static_cast<size_t>(h)]);
          }
          for (int32_t d = 0; d < case_.dim_vo; ++d) {
            set({at, h, d}, out[static_cast<size_t>(h * case_.dim_vo + d)]);
          }
        }
      }
    }
    rows_ = at;
  }

  [[nodiscard]] Outcome judge() const { return runner_.judge(); }
  void multiply_by(float factor) {
    for (int64_t row = 0; row < rows_; ++row) multiply_row(row, factor);
  }
  void multiply_row(int64_t row, float factor) {
    for (int32_t h = 0; h < case_.q_heads; ++h) {
      for (int32_t d = 0; d < case_.dim_vo; ++d) {
        set({row, h, d}, runner_.data().mutable_out().at({row, h, d}) * factor);
      }
    }
  }

 private:
  static const Case& case_of(DType dtype) {
    const char* const suffix = dtype == DType::kF8E4M3 ? "_causal_pairedges" : "_causal_mixed";
    const char* const shape =
        dtype == DType::kF8E4M3 ? "paged64_gqa2_hd128_" : "paged16_gqa2_hd64_";
    return *select_cases(std::string(shape) + name(dtype) + suffix).front();
  }
  static std::string name(DType dtype) {
    return dtype == DType::kF8E4M3 ? "fp8" : pagoda::name(dtype);
  }
  void set(std::initializer_list<int64_t> at, float value) {
    runner_.data().mutable_out().set(at, value);
  }

  const Case& case_;
  CaseRunner runner_;
  int64_t rows_ = 0;
};

// testing/oracle/oracle_test.cpp tests which faults the rule detects; this tests that the runner
// applies it.
TEST(Limits, naive_passes_and_a_factor_of_1_02_fails) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF8E4M3}) {
    NaiveResults results(dtype);
    const Outcome naive = results.judge();
    EXPECT_EQ(naive.verdict, Verdict::kPassed) << naive.message;
    EXPECT_LE(naive.shares.worst(), 0.8);
    results.multiply_by(1.02F);
    EXPECT_EQ(results.judge().verdict, Verdict::kFailed);
  }
}

TEST(Limits, one_row_with_a_factor_of_1_02_fails) {
  for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    NaiveResults results(dtype);
    results.multiply_row(7, 1.02F);
    EXPECT_EQ(results.judge().verdict, Verdict::kFailed);
  }
}

TEST(Selection, takes_substrings_and_globs) {
  EXPECT_EQ(select_cases("").size(), all_cases().size());
  EXPECT_EQ(select_cases("*").size(), all_cases().size());
  EXPECT_TRUE(select_cases("no such case").empty());
  const std::string name = all_cases()[5].name;
  EXPECT_EQ(select_cases(name).front()->name, name);
  const auto decode = select_cases("paged16_*bf16*decode?5");
  ASSERT_FALSE(decode.empty());
  for (const Case* c : decode) EXPECT_EQ(c->page_size, 16);
}

TEST(RunCases, counts_and_reports_progress_and_stops_when_told) {
  const std::vector<const Case*> cases = select_cases("single");
  ASSERT_GE(cases.size(), 2U);
  const std::vector<Target> targets = targets_of("reference");
  int32_t calls = 0;
  const RunSummary all = run_cases(cases, targets, [&](const CaseReport&, int32_t done, int32_t n) {
    EXPECT_EQ(done, ++calls);
    EXPECT_EQ(n, static_cast<int32_t>(cases.size()));
    return true;
  });
  EXPECT_EQ(all.passed, static_cast<int32_t>(cases.size()));
  EXPECT_EQ(all.failed + all.skipped, 0);
  const RunSummary one =
      run_cases(cases, targets, [](const CaseReport&, int32_t, int32_t) { return false; });
  EXPECT_EQ(one.passed, 1);
}

TEST(RunCases, a_case_is_planned_for_the_multiprocessors_that_it_asks_for) {
  std::vector<const Case*> cases = select_cases("*_sms132");
  ASSERT_GE(cases.size(), 2U);
  cases.resize(2);
  std::vector<Target> targets = targets_of("reference");
  std::vector<int32_t> asked;
  targets[0].with_num_sms = [&](int32_t num_sms, const std::function<void()>& body) {
    asked.push_back(num_sms);
    body();
  };
  EXPECT_EQ(run_cases(cases, targets).passed, 2);
  EXPECT_EQ(asked, (std::vector<int32_t>{132, 132}));
  EXPECT_EQ(run_cases(select_cases("single"), targets).failed, 0);
  EXPECT_EQ(asked.size(), 2U);  // other cases set none
}

TEST(RunCases, an_unknown_backend_is_a_failure) {
  const std::vector<const Case*> cases = select_cases("single");
  const RunSummary summary = run_cases(cases, targets_of("abacus"));
  EXPECT_EQ(summary.failed, static_cast<int32_t>(cases.size()));
}

}  // namespace
}  // namespace pagoda::conformance
