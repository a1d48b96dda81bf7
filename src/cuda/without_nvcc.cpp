// The CUDA back end of a build that has no nvcc: a name, and why it can't run.
#include "cuda/backend.hpp"

namespace pagoda::cuda {

const core::Backend& backend() {
  static constexpr core::Backend kBackend{
      .name = "cuda",
      .memory = DeviceType::kCuda,
      .kernels = [] { return std::span<const core::Kernel>(); },
      .description = [] { return std::string(); },
      .why_not = [] { return std::string("this library was built without nvcc"); }};
  return kBackend;
}

}  // namespace pagoda::cuda
