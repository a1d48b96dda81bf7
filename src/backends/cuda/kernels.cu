// The registry rows of the GPUs: every family of src/kernels, with the instances that this build
// holds.
#include <algorithm>

#include "arch/ptx/device.hpp"
#include "backends/cuda/compiled_code.hpp"
#include "backends/cuda/devices.hpp"
#include "backends/cuda/kernels.hpp"
#include "kernels/common/on_gpu.hpp"
#include "kernels/families.hpp"

namespace pagoda::cuda {
namespace {

struct Gpu {
  using Launcher = kernels::OnGpu;
  static constexpr const char* kBackend = "cuda";

  static constexpr bool serves(const kernels::Archs& archs) {
    return archs.vendor == kernels::Vendor::kNvidia;
  }
  static constexpr bool has_code(const kernels::Archs& archs) {
    return std::any_of(archs.compiled.begin(), archs.compiled.end(), is_held);
  }
  static bool can_run(const kernels::Archs& archs, const core::Problem& problem) {
    return cuda::can_run(archs, problem.device);
  }
  static std::string unsupported_reason(const kernels::Archs& archs, const core::Problem& problem) {
    return cuda::unsupported_reason(archs, problem.device);
  }
  static int32_t num_sms(const core::Problem& problem, int32_t /*fewest*/) {
    return arch::devices()[static_cast<size_t>(problem.device.index)].num_sms;
  }
  static cudaStream_t make_context(const core::Kernel& /*row*/, const core::KernelPlan& /*plan*/,
                                   const core::Problem& /*problem*/,
                                   std::span<std::byte> /*workspace*/,
                                   const core::RunContext& context) {
    return static_cast<cudaStream_t>(context.stream.handle);
  }
  static void finish(cudaStream_t /*stream*/) {}
};

}  // namespace

std::span<const core::Kernel> kernels() {
  static const kernels::KernelTable<Gpu> kTable{kernels::Families()};
  return kTable.kernels();
}

}  // namespace pagoda::cuda
