// The kept workspaces of CUDA streams.
#include "backends/cuda/api.hpp"
#include "backends/cuda/kept_workspace.hpp"
#include "backends/gpu/kept_workspace.hpp"

namespace pagoda::cuda {

std::span<std::byte> keep_workspace(core::WorkspaceSize size, Device device, Stream stream) {
  return gpu::KeptWorkspaces<Api>::keep(size, device, stream);
}

}  // namespace pagoda::cuda
