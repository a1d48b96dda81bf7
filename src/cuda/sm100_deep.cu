// One row a shape; the plan says which of its instances runs. No Blackwell chip has run them yet.
#include <array>
#include <vector>

#include "arch/ptx/device.hpp"
#include "cuda/sm100_deep.hpp"
#include "kernels/sm100_deep/instances/on_gpu.hpp"

namespace pagoda::cuda {
namespace {

using sm100_deep::Family;
using sm100_deep::OnGpu;

struct Row {
  const sm100_deep::Shape* shape;
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
  return sm100_deep::refuses(*row_of(self).shape, problem);
}

Result<std::unique_ptr<core::KernelPlan>> plan(const core::Kernel& self,
                                               const core::Problem& problem, const Options&) {
  return std::unique_ptr<core::KernelPlan>(
      sm100_deep::make_plan(*row_of(self).shape, problem, {.num_sms = device_of(problem).num_sms}));
}

void run(const core::Kernel& self, const core::KernelPlan& kernel_plan,
         const core::Problem& problem, std::span<std::byte> /*workspace*/,
         const core::RunContext& context) {
  const auto& plan = static_cast<const sm100_deep::LaunchPlan&>(kernel_plan);
  if (plan.ctas == 0) return;
  auto stream = static_cast<cudaStream_t>(context.stream.handle);
  row_of(self).family.of(plan)(plan.ctas, sm100_deep::make_arguments(plan, problem), stream);
}

std::vector<Row> make_rows() {
  using namespace sm100_deep;
  const std::array families{d256_bf16(), d512_bf16(),   d256_f16(),
                            d512_f16(),  d256_f8e4m3(), d512_f8e4m3()};
  static_assert(std::size(kShapes) == families.size());
  std::vector<Row> rows;
  for (size_t i = 0; i < families.size(); ++i) rows.push_back({&kShapes[i], families[i]});
  return rows;
}

}  // namespace

std::span<const core::Kernel> sm100_deep_kernels() {
  static const std::vector<Row> kRows = make_rows();
  static const std::vector<core::Kernel> kKernels = [] {
    std::vector<core::Kernel> kernels;
    for (const Row& row : kRows) {
      kernels.push_back({.name = row.shape->name,
                         .backend = "cuda",
                         .refuses = refuses,
                         .plan = plan,
                         .run = run,
                         .data = &row});
    }
    return kernels;
  }();
  return kKernels;
}

}  // namespace pagoda::cuda
