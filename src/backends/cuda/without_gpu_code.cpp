// The CUDA back end of a build without GPU code: its name, and why it can't run.
#include "backends/cuda/backend.hpp"

namespace pagoda::cuda {

const core::Backend& backend() {
  static constexpr core::Backend kBackend{
      .name = "cuda",
      .memory = DeviceType::kCuda,
      .kernels = [] { return std::span<const core::Kernel>(); },
      .description = [] { return std::string(); },
      .unavailable_reason =
          [] {
            return std::string(
                "this library was built without GPU code (CMake: PAGODA_CUDA, "
                "PAGODA_CUDA_ARCHITECTURES)");
          }};
  return kBackend;
}

}  // namespace pagoda::cuda
