// The memory of the CUDA devices.
#include "backends/cuda/api.hpp"
#include "backends/cuda/memory_space.hpp"
#include "backends/gpu/memory_space.hpp"

namespace pagoda::cuda {

core::MemorySpace& memory_space(Device device) { return gpu::memory_space<Api>(device); }

}  // namespace pagoda::cuda
