// One row a shape, as on a GPU (cuda/sm100.cu); buffers are declared for the emulator's checks.
#include "kernels/emulated/sm100/rows.hpp"

#include <array>
#include <vector>

#include "kernels/emulated/problem_buffers.hpp"
#include "kernels/emulated/sm100/on_emulator.hpp"
#include "kernels/emulated/sm90_backend.hpp"

namespace pagoda::emulated {
namespace {

using namespace blackwell;
using sm100::Family;

// A small GPU: grids are persistent, so that a few CTAs find everything that many would.
constexpr int32_t kMultiprocessors = 3;

struct Row {
  const sm100::Shape* shape;
  Family<OnEmulator> family;
};

const Row& row_of(const core::Kernel& kernel) { return *static_cast<const Row*>(kernel.data); }

std::string refuses(const core::Kernel& self, const core::Problem& problem, const Options&) {
  return sm100::refuses(*row_of(self).shape, problem);
}

std::string yields(const core::Kernel& self, const core::Problem& problem) {
  return sm100::yields(*row_of(self).shape, problem, kMultiprocessors);
}

Result<std::unique_ptr<core::KernelPlan>> plan(const core::Kernel& self,
                                               const core::Problem& problem,
                                               const Options& options) {
  return std::unique_ptr<core::KernelPlan>(sm100::make_plan(
      *row_of(self).shape, problem,
      {.num_sms = kMultiprocessors, .is_batch_invariant = options.is_batch_invariant}));
}

void run(const core::Kernel& self, const core::KernelPlan& kernel_plan,
         const core::Problem& problem, std::span<std::byte> workspace,
         const core::RunContext& /*context*/) {
  const auto& plan = static_cast<const sm100::LaunchPlan&>(kernel_plan);
  for (int32_t i = 0; i < plan.num_launches; ++i) {
    const sm100::Launch& launch = plan.launches[i];
    EmulatedLaunch context{
        .name = self.name,
        .buffers = buffers_of(problem, plan.zeroed_workspace_bytes, workspace).merged()};
    row_of(self).family.of(plan)(launch.ctas,
                                 sm100::make_arguments(plan, launch, problem, workspace), context);
    expect_clean(context.result);
  }
}

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = [] {
    const std::array families{d64_bf16(),       d128_bf16(),     d64_f16(),
                              d128_f16(),       d64_f8e4m3(),    d128_f8e4m3(),
                              pair_d128_bf16(), pair_d128_f16(), pair_d128_f8e4m3()};
    static_assert(std::size(sm100::kShapes) == families.size());
    std::vector<Row> all;
    for (size_t i = 0; i < families.size(); ++i) all.push_back({&sm100::kShapes[i], families[i]});
    return all;
  }();
  return kRows;
}

}  // namespace

std::span<const core::Kernel> sm100_kernels() {
  static const std::vector<core::Kernel> kKernels = [] {
    std::vector<core::Kernel> kernels;
    for (const Row& row : rows()) {
      kernels.push_back({.name = row.shape->name,
                         .backend = "emu:sm100",
                         .refuses = refuses,
                         .plan = plan,
                         .run = run,
                         .yields = yields,
                         .data = &row});
    }
    return kernels;
  }();
  return kKernels;
}

}  // namespace pagoda::emulated
