// Device memory for run(attention, options), kept between calls (backends/gpu/kept_workspace.hpp).
#pragma once

#include "core/backend.hpp"

namespace pagoda::cuda {

[[nodiscard]] Result<std::span<std::byte>> keep_workspace(core::WorkspaceSize size, Device device,
                                                          Stream stream);
void release_workspaces();

}  // namespace pagoda::cuda
