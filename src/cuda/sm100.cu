// One row a shape; the plan says which of its instances run. No Blackwell chip has run them yet.
#include <array>
#include <vector>

#include "arch/ptx/device.hpp"
#include "cuda/sm100.hpp"
#include "kernels/sm100/instances/on_gpu.hpp"

namespace pagoda::cuda {
namespace {

using sm100::Family;
using sm100::OnGpu;

struct Row {
  const sm100::Shape* shape;
  Family<OnGpu> family;
};

const Row& row_of(const core::Kernel& kernel) { return *static_cast<const Row*>(kernel.data); }

const arch::DeviceProperties& device_of(const core::Problem& problem) {
  return arch::devices()[static_cast<size_t>(problem.device.index)];
}

std::string refuses(const core::Kernel& self, const core::Problem& problem, const Options&) {
  const arch::DeviceProperties& device = device_of(problem);
  if (device.arch != 100 && device.arch != 103) {
    return device.name + " is sm_" + std::to_string(device.arch) + ", these are for sm_100 and 103";
  }
  return sm100::refuses(*row_of(self).shape, problem);
}

std::string yields(const core::Kernel& self, const core::Problem& problem) {
  return sm100::yields(*row_of(self).shape, problem, device_of(problem).num_sms);
}

Result<std::unique_ptr<core::KernelPlan>> plan(const core::Kernel& self,
                                               const core::Problem& problem,
                                               const Options& options) {
  return std::unique_ptr<core::KernelPlan>(sm100::make_plan(
      *row_of(self).shape, problem,
      {.num_sms = device_of(problem).num_sms, .is_batch_invariant = options.is_batch_invariant}));
}

void run(const core::Kernel& self, const core::KernelPlan& kernel_plan,
         const core::Problem& problem, std::span<std::byte> workspace,
         const core::RunContext& context) {
  const auto& plan = static_cast<const sm100::LaunchPlan&>(kernel_plan);
  auto stream = static_cast<cudaStream_t>(context.stream.handle);
  for (int32_t i = 0; i < plan.num_launches; ++i) {
    const sm100::Launch& launch = plan.launches[i];
    row_of(self).family.of(plan)(launch.ctas,
                                 sm100::make_arguments(plan, launch, problem, workspace), stream);
  }
}

std::vector<Row> make_rows() {
  using namespace sm100;
  const std::array families{d64_bf16(),       d128_bf16(),     d64_f16(),
                            d128_f16(),       d64_f8e4m3(),    d128_f8e4m3(),
                            pair_d128_bf16(), pair_d128_f16(), pair_d128_f8e4m3()};
  static_assert(std::size(kShapes) == families.size());
  std::vector<Row> rows;
  for (size_t i = 0; i < families.size(); ++i) rows.push_back({&kShapes[i], families[i]});
  return rows;
}

}  // namespace

std::span<const core::Kernel> sm100_kernels() {
  static const std::vector<Row> kRows = make_rows();
  static const std::vector<core::Kernel> kKernels = [] {
    std::vector<core::Kernel> kernels;
    for (const Row& row : kRows) {
      kernels.push_back({.name = row.shape->name,
                         .backend = "cuda",
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

}  // namespace pagoda::cuda
