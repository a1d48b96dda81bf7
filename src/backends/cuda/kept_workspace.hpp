// Device memory for run(attention, options), kept for as long as the process runs.
#pragma once

#include "core/backend.hpp"

namespace pagoda::cuda {

// One workspace per stream: calls on one stream run in order and may share it. Growing allocates,
// so a stream's first call must not be captured. Outgrown memory is kept: a captured graph may use
// it.
[[nodiscard]] std::span<std::byte> keep_workspace(core::WorkspaceSize size, Device device,
                                                  Stream stream);

}  // namespace pagoda::cuda
