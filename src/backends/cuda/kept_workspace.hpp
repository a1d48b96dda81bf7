// Device memory for run(attention, options), kept for as long as the process runs.
#pragma once

#include "core/backend.hpp"

namespace pagoda::cuda {

// A stream's own: what follows each other on it may share memory. Growing allocates, so a stream's
// first call must not be captured; memory that was outgrown is kept, for a captured graph may use it.
[[nodiscard]] std::span<std::byte> keep_workspace(core::WorkspaceSize size, Device device,
                                                  Stream stream);

}  // namespace pagoda::cuda
