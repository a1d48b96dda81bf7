// setmaxnreg: registers move from a producer to its consumers; each wrong use is reported.
#include "arch/register_budget.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <string_view>

#include "arch/debug.hpp"
#include "arch/grid_dependency.hpp"
#include "arch/memory.hpp"
#include "arch/thread.hpp"
#include "emulator/machine/launch.hpp"
#include "testing/material/expect_report.hpp"

namespace pagoda {
namespace {

using namespace arch;
using namespace emulator;

enum class Bug {
  kNone,
  kNoDecrease,
  kTooMuch,
  kKeepsTooMuch,
  kSmallerIncrease,
  kLargerDecrease,
  kOneWarpOnly,
};

// The budgets of a producer and two consumers as FlashAttention-3 sets them: 24 + 2 x 240 = 3 x
// 168.
struct RolesKernel {
  struct Params {
    Bug bug;
  };
  struct Storage {};
  static constexpr int kThreads = 384, kRegisters = 168;
  static inline uint32_t decrease_line, increase_line, wrong_line;

  static PAGODA_DEVICE void run(const Params& params) {
    grid_dependency_wait();
    if (warpgroup_idx() == 0) {
      const Role role("producer");
      if (params.bug == Bug::kOneWarpOnly && warp_idx() != 3) return;
      if (params.bug == Bug::kLargerDecrease) {
        wrong_line = __LINE__ + 1;
        register_budget_decrease<176>();
      }
      if (params.bug == Bug::kKeepsTooMuch) {
        register_budget_decrease<32>();
      } else if (params.bug != Bug::kNoDecrease) {
        decrease_line = __LINE__ + 1;
        register_budget_decrease<24>();
      }
    } else if (params.bug != Bug::kOneWarpOnly) {
      const Role role("consumer");
      if (params.bug == Bug::kSmallerIncrease) {
        wrong_line = __LINE__ + 1;
        register_budget_increase<160>();
      }
      increase_line = __LINE__ + 1;
      register_budget_increase<240>();
      if (params.bug == Bug::kTooMuch) {
        wrong_line = __LINE__ + 1;
        register_budget_increase<248>();
      }
    }
    grid_launch_dependents();
  }
};

Result run_roles(Bug bug, Options options, int registers = RolesKernel::kRegisters) {
  LaunchShape shape = shape_of<RolesKernel>("roles", {2});
  shape.registers = registers;
  return launch<RolesKernel>(shape, {bug}, {}, options);
}

TEST(RegisterBudget, correct_kernel_is_silent_in_every_mode_over_100_seeds) {
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      ASSERT_EQ(all_reports(run_roles(Bug::kNone, {.mode = mode, .seed = seed})), "");
    }
  }
}

TEST(RegisterBudget, each_wrong_use_is_reported_with_its_line_in_every_mode) {
  using Kernel = RolesKernel;
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      SCOPED_TRACE(testing::Message() << name(mode) << ' ' << seed);
      const auto expect = [&](Bug bug, ReportKind kind, const uint32_t& line,
                              std::string_view text) {
        const Result result = run_roles(bug, {.mode = mode, .seed = seed});
        EXPECT_EQ(missing_report(result, kind, line, text), "");
      };
      expect(Bug::kNoDecrease, ReportKind::kDeadlock, Kernel::increase_line,
             "(consumer) wait for 2304 registers to raise the warp from 168 to 240 a thread");
      expect(Bug::kSmallerIncrease, ReportKind::kProtocol, Kernel::wrong_line,
             "an increase to 160 registers, where the warp has 168");
      expect(Bug::kLargerDecrease, ReportKind::kProtocol, Kernel::wrong_line,
             "a decrease to 176 registers, where the warp has 168");
      expect(Bug::kOneWarpOnly, ReportKind::kProtocol, Kernel::decrease_line,
             "did not execute this; all four warps of a warpgroup must");
      // 32 + 2 x 240 would fit the register file, not what the CTA has.
      expect(Bug::kKeepsTooMuch, ReportKind::kDeadlock, Kernel::increase_line,
             "CTA 0 registers: 1280 are free");
      // Who takes the last registers depends on the schedule.
      const Result too_much = run_roles(Bug::kTooMuch, {.mode = mode, .seed = seed});
      const std::string_view text = "(consumer) wait for ";
      EXPECT_TRUE(
          missing_report(too_much, ReportKind::kDeadlock, Kernel::wrong_line, text).empty() ||
          missing_report(too_much, ReportKind::kDeadlock, Kernel::increase_line, text).empty());
    }
  }
}

TEST(RegisterBudget, budgets_that_can_never_fit_are_reported) {
  EXPECT_EQ(missing_report(run_roles(Bug::kNone, {}, 40), ReportKind::kProtocol,
                           RolesKernel::increase_line, "can give back only"),
            "");
  const Result too_many = run_roles(Bug::kNone, {}, 176);
  ASSERT_EQ(too_many.reports.size(), 1U);
  EXPECT_EQ(too_many.reports[0].message,
            "384 threads of 176 registers do not fit the register file of 65536");
}

}  // namespace
}  // namespace pagoda
