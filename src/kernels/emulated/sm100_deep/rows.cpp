// One row a shape, as on a GPU (cuda/sm100_deep.cu); buffers are declared for the emulator's checks.
#include "kernels/emulated/sm100_deep/rows.hpp"

#include <array>
#include <vector>

#include "kernels/emulated/problem_buffers.hpp"
#include "kernels/emulated/sm100_deep/on_emulator.hpp"
#include "kernels/emulated/sm90_backend.hpp"

namespace pagoda::emulated {
namespace {

using namespace blackwell;
using sm100_deep::Family;

// A small GPU: grids are persistent, so that two pairs find everything that many would.
constexpr int32_t kMultiprocessors = 4;

struct Row {
  const sm100_deep::Shape* shape;
  Family<OnEmulator> family;
};

const Row& row_of(const core::Kernel& kernel) { return *static_cast<const Row*>(kernel.data); }

std::string refuses(const core::Kernel& self, const core::Problem& problem, const Options&) {
  return sm100_deep::refuses(*row_of(self).shape, problem);
}

Result<std::unique_ptr<core::KernelPlan>> plan(const core::Kernel& self,
                                               const core::Problem& problem, const Options&) {
  return std::unique_ptr<core::KernelPlan>(
      sm100_deep::make_plan(*row_of(self).shape, problem, {.num_sms = kMultiprocessors}));
}

void run(const core::Kernel& self, const core::KernelPlan& kernel_plan,
         const core::Problem& problem, std::span<std::byte> workspace,
         const core::RunContext& /*context*/) {
  const auto& plan = static_cast<const sm100_deep::LaunchPlan&>(kernel_plan);
  if (plan.ctas == 0) return;
  EmulatedLaunch context{.name = self.name, .buffers = buffers_of(problem, 0, workspace).merged()};
  row_of(self).family.of(plan)(plan.ctas, sm100_deep::make_arguments(plan, problem), context);
  expect_clean(context.result);
}

const std::vector<Row>& rows() {
  static const std::vector<Row> kRows = [] {
    const std::array families{d256_bf16(), d512_bf16(),   d256_f16(),
                              d512_f16(),  d256_f8e4m3(), d512_f8e4m3()};
    static_assert(std::size(sm100_deep::kShapes) == families.size());
    std::vector<Row> all;
    for (size_t i = 0; i < families.size(); ++i) {
      all.push_back({&sm100_deep::kShapes[i], families[i]});
    }
    return all;
  }();
  return kRows;
}

}  // namespace

std::span<const core::Kernel> sm100_deep_kernels() {
  static const std::vector<core::Kernel> kKernels = [] {
    std::vector<core::Kernel> kernels;
    for (const Row& row : rows()) {
      kernels.push_back({.name = row.shape->name,
                         .backend = "emu:sm100",
                         .refuses = refuses,
                         .plan = plan,
                         .run = run,
                         .data = &row});
    }
    return kernels;
  }();
  return kKernels;
}

}  // namespace pagoda::emulated
