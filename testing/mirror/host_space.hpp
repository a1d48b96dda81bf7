// Host memory as a MemorySpace, and the memory space of a back end by name.
#pragma once

#include <string>

#include "core/memory_space.hpp"

namespace pagoda::mirror {

[[nodiscard]] core::MemorySpace& host_space();

// The memory that a back end's calls read. Throws if the name is unknown or its device can't be
// used.
[[nodiscard]] core::MemorySpace& space_of(const std::string& backend);

}  // namespace pagoda::mirror
