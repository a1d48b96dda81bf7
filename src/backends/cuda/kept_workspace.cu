// The kept workspaces of CUDA streams.
#include "backends/cuda/api.hpp"
#include "backends/cuda/kept_workspace.hpp"
#include "backends/gpu/kept_workspace.hpp"

namespace pagoda::cuda {

Result<std::span<std::byte>> keep_workspace(core::WorkspaceSize size, Device device,
                                            Stream stream) {
  return gpu::KeptWorkspaces<Api>::keep(size, device, stream);
}

void release_workspaces() { gpu::KeptWorkspaces<Api>::release(); }

}  // namespace pagoda::cuda
