// The Blackwell kernels on the emulator: the schedule that no other test runs, one tile a CTA, and
// the MMAs whose order the ISA does not promise.
#include <gtest/gtest.h>
#include <string_view>

#include "testing/emulate/attention.hpp"
#include "testing/emulate/registry.hpp"

namespace pagoda::emulate {
namespace {

void expect_right_in_every_mode(Outcome (*run)(const emulator::Options&)) {
  using emulator::Mode;
  for (const Mode mode : {Mode::kRoundRobin, Mode::kRandom, Mode::kEager, Mode::kLazy}) {
    for (uint64_t seed = 1; seed <= 2; ++seed) {
      const Outcome outcome = run({.mode = mode, .seed = seed});
      EXPECT_TRUE(outcome.is_right()) << outcome.first_mismatch;
      EXPECT_GT(outcome.checked, 0U);
    }
  }
}

TEST(SM100MHA2Q, one_tile_per_cta_is_right) { expect_right_in_every_mode(run_mha_2q_transient); }
TEST(SM100MHA2Q, one_tile_per_pair_with_k_in_parts_is_right) {
  expect_right_in_every_mode(run_mha_2q_pair_transient);
}

// S over P (docs/decisions/0026-order-of-mmas.md), and nothing else.
TEST(MmaOrder, only_s_over_p_relies_on_more_than_the_isa) {
  int kernels = 0;
  for (const EmulatedKernel& kernel : all_kernels()) {
    const std::string_view name = kernel.name;
    if (!name.starts_with("sm100/mha_") || kernel.planted) continue;
    SCOPED_TRACE(name);
    ++kernels;
    const Outcome outcome = kernel.run({.mma_order = emulator::MmaOrder::kIsa});
    EXPECT_EQ(outcome.mismatches, 0U) << outcome.first_mismatch;  // executed as issued
    if (name.starts_with("sm100/mha_d512")) {
      EXPECT_TRUE(outcome.result.is_clean()) << to_string(outcome.result.reports[0]);
      continue;
    }
    ASSERT_EQ(outcome.result.reports.size(), 1U);
    const emulator::Report& report = outcome.result.reports[0];
    EXPECT_EQ(report.kind, emulator::ReportKind::kRace);
    EXPECT_EQ(std::string_view(report.primitive), "UMma::ss");
    EXPECT_NE(report.message.find("after the read by UMma::ts"), std::string::npos)
        << report.message;
  }
  EXPECT_GE(kernels, 8);
}

}  // namespace
}  // namespace pagoda::emulate
