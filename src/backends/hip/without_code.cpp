// The HIP back end of a build without AMD code: its name, and why it can't run.
#include "backends/hip/backend.hpp"

namespace pagoda::hip {

const core::Backend& backend() {
  static constexpr core::Backend kBackend{
      .name = "hip",
      .memory = DeviceType::kHip,
      .kernels = [] { return std::span<const core::Kernel>(); },
      .description = [] { return std::string(); },
      .unavailable_reason =
          [] {
            return std::string("this library was built without AMD code (CMake: PAGODA_HIP)");
          }};
  return kBackend;
}

}  // namespace pagoda::hip
