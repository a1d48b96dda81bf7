// The functors of examples/functors on the CPU and on the emulators, against the reference; proofs
// that a wrong functor is found; the errors of calls that name a functor.
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "backends/cpu/reference.hpp"
#include "pagoda/backend.hpp"
#include "pagoda/emulator.hpp"
#include "testing/conformance/runner.hpp"
#include "tests/functors/functor_cases.hpp"
#include "tests/functors/holes.hpp"
#include "tests/functors/liar.hpp"

namespace pagoda::functor_tests {
namespace {

using conformance::Case;
using conformance::CaseRunner;
using conformance::Outcome;
using conformance::Verdict;

class Functors : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { ASSERT_TRUE(register_emulator()); }
};

Outcome run_with(CaseRunner& runner, const Case& c, const std::string& backend) {
  const EmulatorScope scope(EmulatorSettings{c.num_sms});
  return runner.run(Options{.backend = backend}, conformance::effort_for(backend));
}

// The call of a runner whose expected results exist already.
Attention& call_of(CaseRunner& runner) { return const_cast<Attention&>(runner.data().attention()); }

TEST_P(Functors, agree_with_the_reference) {
  for (const Case& c : cases()) {
    CaseRunner runner(c);
    const Outcome outcome = run_with(runner, c, GetParam());
    const bool is_skipped = outcome.verdict == Verdict::kSkipped && may_skip(c, GetParam());
    EXPECT_TRUE(outcome.verdict == Verdict::kPassed || is_skipped)
        << c.name << " by " << outcome.kernel << ": " << outcome.message;
  }
}

TEST_P(Functors, a_table_that_is_off_by_2_percent_is_found) {
  Case c;
  for (const Case& one : cases()) {
    if (one.name == "decay_causal") c = one;
  }
  CaseRunner runner(c);
  call_of(runner).functor = head_decay(/*is_steeper=*/true);
  EXPECT_EQ(run_with(runner, c, GetParam()).verdict, Verdict::kFailed);
  call_of(runner).functor = head_decay();
  EXPECT_EQ(run_with(runner, c, GetParam()).verdict, Verdict::kPassed);
}

INSTANTIATE_TEST_SUITE_P(Backends, Functors,
                         testing::Values("cpu", "reference", "emu:sm80", "emu:sm90", "emu:sm100"),
                         [](const auto& backend) {
                           std::string name = backend.param;
                           for (char& letter : name) letter = letter == ':' ? '_' : letter;
                           return name;
                         });

Case liar_case() {
  Case c;
  c.name = "liar";
  c.q_dtype = c.kv_dtype = DType::kBF16;
  c.dim_qk = c.dim_vo = 128;
  c.lengths = {"liar", {{300, 300, conformance::Sequence::kOmitted, 1}}};
  c.functor = [] { return functor("liar", Liar{}); };
  return c;
}

TEST_P(Functors, a_visible_that_lies_is_found_by_results_and_by_checked_mode) {
  const std::string backend = GetParam();
  const bool is_host = backend == "cpu" || backend == "reference";
  const Case c = liar_case();
  CaseRunner runner(c);
  for (const Liar::Lie lie : {Liar::kNone, Liar::kLeavesKeysOut, Liar::kCallsMaskedKeysUnmasked}) {
    call_of(runner).functor = functor("liar", Liar{lie});
    const bool is_true = lie == Liar::kNone;
    // The CPU asks keep() for every pair.
    EXPECT_EQ(runner.run({.backend = backend}).verdict,
              is_true || is_host ? Verdict::kPassed : Verdict::kFailed)
        << lie;
    const Outcome checked = runner.run({.backend = backend, .checks_indices = true});
    EXPECT_EQ(checked.verdict, is_true ? Verdict::kPassed : Verdict::kFailed) << lie;
    if (!is_true) {
      const char* part = lie == Liar::kLeavesKeysOut ? "leaves out" : "calls unmasked";
      EXPECT_NE(checked.message.find(part), std::string::npos) << checked.message;
    }
  }
}

Case holes_case() {
  constexpr int32_t kOmitted = conformance::Sequence::kOmitted;
  Case c = liar_case();
  c.name = "holes";
  c.lengths = {"holes", {{150, 420, kOmitted, 1}, {84, 333, kOmitted, 2}}};
  c.functor = [] { return functor("holes", Holes{}); };
  return c;
}

// Between the bounds of visible() keep() decides, pair by pair. mha_sm90 asks visible() also for the
// rows of a warp, in each partial KV tile: what it answers there is used.
TEST_P(Functors, keys_between_the_bounds_are_tested_pair_by_pair) {
  const std::string backend = GetParam();
  const Case c = holes_case();
  CaseRunner runner(c);
  for (const Holes::Lie lie :
       {Holes::kNone, Holes::kLeavesKeysOut, Holes::kCallsMaskedKeysUnmasked}) {
    call_of(runner).functor = functor("holes", Holes{lie});
    if (lie != Holes::kNone && backend != "emu:sm90") continue;
    EXPECT_EQ(runner.run({.backend = backend}).verdict,
              lie == Holes::kNone ? Verdict::kPassed : Verdict::kFailed)
        << lie;
  }
}

TEST_P(Functors, the_mask_of_a_call_excludes_keys_that_its_functor_calls_unmasked) {
  Case c = holes_case();
  c.mask = {"window", [](conformance::MaskMaterial&) { return Mask::window(100, 0); }};
  CaseRunner runner(c);
  const Outcome outcome = runner.run({.backend = GetParam()});
  EXPECT_EQ(outcome.verdict, Verdict::kPassed) << outcome.message;
}

TEST(FunctorReference, documents_are_the_predicate) {
  for (const Case& c : cases()) {
    if (c.name != "documents_prefill") continue;
    CaseRunner runner(c);
    core::Problem problem = runner.data().canonical();
    core::Problem other = problem;
    const Mask mask = documents_on_the_cpu();
    other.functor = {};
    other.mask = mask.nodes();
    int64_t kept = 0;
    for (int32_t row = 0; row < problem.seqlen_q(0); ++row) {
      for (int32_t key = 0; key < problem.seqlen_kv(0); ++key) {
        const bool is_kept = cpu::reference_mask(problem, 0, row, 0, key).keep;
        ASSERT_EQ(is_kept, cpu::reference_mask(other, 0, row, 0, key).keep) << row << " " << key;
        kept += is_kept ? 1 : 0;
      }
    }
    EXPECT_GT(kept, 1000);
  }
}

// --- errors --------------------------------------------------------------------------------------

class FunctorErrors : public testing::Test {
 protected:
  FunctorErrors() : runner_(case_) { EXPECT_TRUE(register_emulator()); }
  Attention& call() { return call_of(runner_); }
  std::string error(const std::string& backend, const std::string& kernel = "") {
    const Result<Plan> plan = pagoda::plan(call(), {.backend = backend, .kernel = kernel});
    return plan ? "" : plan.status().message();
  }
  static void expect(const std::string& message, const std::vector<std::string>& parts) {
    for (const std::string& part : parts) {
      EXPECT_NE(message.find(part), std::string::npos) << part << " is not in: " << message;
    }
  }

  Case case_ = liar_case();
  CaseRunner runner_;
};

TEST_F(FunctorErrors, name_field_value_and_limit) {
  call().functor = functor("nobody", Liar{});
  expect(error("cpu"), {"functor.name", "\"nobody\"", "liar", "documents"});
  call().functor = functor("", Liar{});
  expect(error("cpu"), {"functor.name", "\"\"", "must be given"});
  call().functor = functor("liar", int64_t{1});
  expect(error("cpu"), {"functor.value_bytes", "is 8", "4"});
  call().functor = functor("liar", Liar{});
  call().functor.num_arrays = 5;
  expect(error("cpu"), {"functor.num_arrays", "is 5", "[0, 4]"});
  call().functor.num_arrays = -1;
  expect(error("cpu"), {"functor.num_arrays", "is -1"});
  call().functor = documents();
  call().functor.arrays[0].device = {DeviceType::kCuda, 0};
  expect(error("emu:sm90"), {"functor.arrays[0].device", "cuda"});
}

TEST_F(FunctorErrors, say_which_kernels_have_the_functor) {
  EXPECT_EQ(error("emu:sm90"), "");
  expect(error("emu:gfx942"), {"compiled without functor \"liar\""});
  expect(error("emu:sm90", "sm90.d128.bf16"), {"compiled without functor \"liar\""});
  call().functor = {};
  expect(error("emu:sm90", "sm90.d128.bf16+liar"), {"a functor that the call does not name"});
  call().functor = functor("liar", Liar{});
  EXPECT_EQ(error("emu:sm90", "sm90.d128.bf16+liar"), "");
  call().score_mod.softcap = 20;
  expect(error("emu:sm90"), {"d128.bf16+liar", "soft cap"});
  EXPECT_EQ(error("cpu"), "");
}

TEST_F(FunctorErrors, an_array_that_the_call_does_not_list_is_out_of_bounds) {
  call().functor = documents();
  call().functor.num_arrays = 0;
  expect(runner_.run({.backend = "emu:sm90"}).message, {"the emulator found", "global memory"});
}

TEST_F(FunctorErrors, a_plan_is_for_its_functor) {
  const Result<Plan> planned = pagoda::plan(call(), {.backend = "cpu"});
  ASSERT_TRUE(planned);
  call().functor = causal();
  std::vector<std::byte> workspace(static_cast<size_t>(planned->workspace_bytes()) + 64);
  const Status status = pagoda::run(*planned, call(), workspace);
  expect(status.message(), {"functor"});
}

TEST_F(FunctorErrors, kernels_and_explain_list_them) {
  const std::vector<std::string> names = kernels("emu:sm100");
  EXPECT_NE(std::find(names.begin(), names.end(), "sm100.d128.bf16+documents"), names.end());
  const auto infos = explain(call(), {.backend = "emu:sm100"});
  ASSERT_TRUE(infos);
  EXPECT_TRUE(infos->front().is_selected);
  EXPECT_EQ(infos->front().name, "sm100.d128.bf16+liar");
}

}  // namespace
}  // namespace pagoda::functor_tests
