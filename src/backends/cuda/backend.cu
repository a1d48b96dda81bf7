// The CUDA back end as core::Backend. It makes the device of a call current before a kernel's
// functions run.
#include "backends/cuda/api.hpp"
#include "backends/cuda/backend.hpp"
#include "backends/cuda/devices.hpp"
#include "backends/cuda/kept_workspace.hpp"
#include "backends/cuda/kernels.hpp"
#include "backends/cuda/memory_space.hpp"
#include "backends/cuda/states.hpp"
#include "backends/gpu/guarded_rows.hpp"

namespace pagoda::cuda {
namespace {

std::span<const core::Kernel> guarded_kernels() {
  static const gpu::GuardedRows<Api> kRows(kernels());
  return kRows.rows();
}

}  // namespace

const core::Backend& backend() {
  static constexpr core::Backend kBackend{.name = "cuda",
                                          .memory = DeviceType::kCuda,
                                          .kernels = guarded_kernels,
                                          .description = description,
                                          .unavailable_reason = unavailable_reason,
                                          .append_kv = append_kv,
                                          .merge_states = merge_states,
                                          .zero_padding_rows = zero_padding_rows,
                                          .misplaced = misplaced,
                                          .keep_workspace = keep_workspace,
                                          .release_workspaces = release_workspaces,
                                          .memory_space = memory_space};
  return kBackend;
}

}  // namespace pagoda::cuda
