// The registry rows of the AMD GPUs: every family of src/kernels for them, with the instances that
// this build holds.
#include "backends/hip/kernels.hpp"

#include <algorithm>

#include "arch/hip/device.hpp"
#include "backends/hip/devices.hpp"
#include "kernels/common/on_hip.hpp"
#include "kernels/families.hpp"

namespace pagoda::hip {
namespace {

struct Gpu {
  using Launcher = kernels::OnHip;
  static constexpr const char* kBackend = "hip";

  static constexpr bool serves(const kernels::Archs& archs) {
    return archs.vendor == kernels::Vendor::kAmd;
  }
  static constexpr bool has_code(const kernels::Archs& archs) {
    return std::any_of(archs.compiled.begin(), archs.compiled.end(), is_held);
  }
  static bool can_run(const kernels::Archs& archs, const core::Problem& problem) {
    return hip::can_run(archs, problem.device);
  }
  static std::string unsupported_reason(const kernels::Archs& archs, const core::Problem& problem) {
    return hip::unsupported_reason(archs, problem.device);
  }
  static int32_t num_sms(const core::Problem& problem, int32_t /*fewest*/) {
    return arch::devices()[static_cast<size_t>(problem.device.index)].num_cus;
  }
  static arch::HipStream make_context(const core::Kernel& /*row*/, const core::KernelPlan& /*plan*/,
                                      const core::Problem& /*problem*/,
                                      std::span<std::byte> /*workspace*/,
                                      const core::RunContext& context) {
    return static_cast<arch::HipStream>(context.stream.handle);
  }
  static void finish(arch::HipStream /*stream*/) {}
};

}  // namespace

std::span<const core::Kernel> kernels() {
  static const kernels::KernelTable<Gpu> kTable{kernels::Families()};
  return kTable.kernels();
}

}  // namespace pagoda::hip
