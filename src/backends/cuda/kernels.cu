// The registry rows of the GPUs: every family of src/kernels, with the instances that this build
// holds.
#include <algorithm>

#include "backends/cuda/compiled_code.hpp"
#include "backends/cuda/devices.hpp"
#include "backends/cuda/gpu_machine.hpp"
#include "backends/cuda/kernels.hpp"
#include "kernels/families.hpp"

namespace pagoda::cuda {
namespace {

struct Gpu : GpuMachine {
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
};

}  // namespace

std::span<const core::Kernel> kernels() {
  static const kernels::KernelTable<Gpu> kTable{kernels::Families()};
  return kTable.kernels();
}

}  // namespace pagoda::cuda
