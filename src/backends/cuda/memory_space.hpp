// The memory of a GPU, for programs that allocate the data of calls there.
#pragma once

#include "core/memory_space.hpp"

namespace pagoda::cuda {

// Lives as long as the process. Throws if there is no such GPU.
[[nodiscard]] core::MemorySpace& memory_space(Device device);

}  // namespace pagoda::cuda
