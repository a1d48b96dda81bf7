// The host's memory as a MemorySpace, and the space of a back end by name.
#pragma once

#include <string>

#include "core/memory_space.hpp"

namespace pagoda::mirror {

[[nodiscard]] core::MemorySpace& host_space();

// Where the calls of a back end find their arrays. Throws where the name is unknown, or where its
// device can't be used.
[[nodiscard]] core::MemorySpace& space_of(const std::string& backend);

}  // namespace pagoda::mirror
