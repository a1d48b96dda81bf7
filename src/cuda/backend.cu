// What the CUDA back end offers, and why it can't run where it can't. Every call that reaches a
// kernel does so with its device current.
#include <vector>

#include "arch/ptx/device.hpp"
#include "cuda/backend.hpp"
#include "cuda/kept_workspace.hpp"
#include "cuda/kernels.hpp"

namespace pagoda::cuda {
namespace {

constexpr int32_t kArch = 90;  // kernels are compiled for sm_90a, which runs on nothing else

std::string version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

int driver_version() {
  int driver = 0;
  return cudaDriverGetVersion(&driver) == cudaSuccess ? driver : 0;
}

std::string describe(const arch::DeviceProperties& device) {
  return device.name + " (sm_" + std::to_string(device.arch) + ")";
}

std::string list(std::span<const arch::DeviceProperties> devices) {
  std::string text;
  for (const auto& device : devices) text += (text.empty() ? "" : ", ") + describe(device);
  return text;
}

std::string find_obstacle() {
  const int driver = driver_version();
  if (driver == 0) return "no NVIDIA driver";
  const std::span<const arch::DeviceProperties> devices = arch::devices();
  if (arch::devices_error() == cudaErrorInsufficientDriver) {
    return "the NVIDIA driver is for CUDA " + version(driver) + "; needs " +
           version(CUDART_VERSION);
  }
  if (devices.empty()) {
    return std::string("no NVIDIA GPU: ") + cudaGetErrorString(arch::devices_error());
  }
  for (const auto& device : devices) {
    if (device.arch == kArch) return {};
  }
  return "the kernels are for sm_" + std::to_string(kArch) + "; this machine has " + list(devices);
}

std::string why_not() {
  static const std::string kObstacle = [] {
    try {
      return find_obstacle();
    } catch (const std::exception& e) {  // backends() must not throw
      return std::string(e.what());
    }
  }();
  return kObstacle;
}

std::string description() { return list(arch::devices()) + ", CUDA " + version(driver_version()); }

std::string refuse_device(Device device) {
  const std::span<const arch::DeviceProperties> devices = arch::devices();
  if (device.index < 0 || static_cast<size_t>(device.index) >= devices.size()) {
    return "there is no cuda:" + std::to_string(device.index) + "; this machine has " +
           std::to_string(devices.size()) + " devices";
  }
  const arch::DeviceProperties& found = devices[static_cast<size_t>(device.index)];
  if (found.arch == kArch) return {};
  return "is for sm_" + std::to_string(kArch) + "; cuda:" + std::to_string(device.index) + " is " +
         describe(found);
}

// A row that stands before one of kernels(), and is its `data`.
const core::Kernel& inner(const core::Kernel& row) {
  return *static_cast<const core::Kernel*>(row.data);
}

core::Kernel guard(const core::Kernel& kernel) {
  return {
      .name = kernel.name,
      .backend = "cuda",
      .refuses =
          [](const core::Kernel& self, const core::Problem& problem, const Options& options) {
            const std::string reason = refuse_device(problem.device);
            if (!reason.empty()) return reason;
            const arch::DeviceGuard device(problem.device.index);
            return inner(self).refuses(inner(self), problem, options);
          },
      .plan =
          [](const core::Kernel& self, const core::Problem& problem, const Options& options) {
            const arch::DeviceGuard device(problem.device.index);
            return inner(self).plan(inner(self), problem, options);
          },
      .run =
          [](const core::Kernel& self, const core::KernelPlan& plan, const core::Problem& problem,
             std::span<std::byte> workspace, const core::RunContext& context) {
            const arch::DeviceGuard device(problem.device.index);
            inner(self).run(inner(self), plan, problem, workspace, context);
          },
      .yields =
          [](const core::Kernel& self, const core::Problem& problem) {
            return inner(self).yields == nullptr ? std::string()
                                                 : inner(self).yields(inner(self), problem);
          },
      .data = &kernel};
}

std::span<const core::Kernel> guarded_kernels() {
  static const std::vector<core::Kernel> kRows = [] {
    std::vector<core::Kernel> rows;
    for (const core::Kernel& kernel : kernels()) rows.push_back(guard(kernel));
    return rows;
  }();
  return kRows;
}

}  // namespace

const core::Backend& backend() {
  static constexpr core::Backend kBackend{.name = "cuda",
                                          .memory = DeviceType::kCuda,
                                          .kernels = guarded_kernels,
                                          .description = description,
                                          .why_not = why_not,
                                          .keep_workspace = keep_workspace};
  return kBackend;
}

}  // namespace pagoda::cuda
