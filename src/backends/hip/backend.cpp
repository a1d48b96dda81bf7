// The HIP back end as core::Backend. It makes the device of a call current before a kernel's
// functions run.
#include "backends/hip/backend.hpp"

#include "backends/gpu/guarded_rows.hpp"
#include "backends/gpu/kept_workspace.hpp"
#include "backends/gpu/memory_space.hpp"
#include "backends/hip/api.hpp"
#include "backends/hip/devices.hpp"
#include "backends/hip/kernels.hpp"
#include "backends/hip/states.hpp"

namespace pagoda::hip {
namespace {

std::span<const core::Kernel> guarded_kernels() {
  static const gpu::GuardedRows<Api> kRows(kernels());
  return kRows.rows();
}

}  // namespace

const core::Backend& backend() {
  static constexpr core::Backend kBackend{.name = "hip",
                                          .memory = DeviceType::kHip,
                                          .kernels = guarded_kernels,
                                          .description = description,
                                          .unavailable_reason = unavailable_reason,
                                          .append_kv = append_kv,
                                          .merge_states = merge_states,
                                          .zero_padding_rows = zero_padding_rows,
                                          .misplaced = misplaced,
                                          .keep_workspace = gpu::KeptWorkspaces<Api>::keep,
                                          .release_workspaces = gpu::KeptWorkspaces<Api>::release,
                                          .memory_space = gpu::memory_space<Api>};
  return kBackend;
}

}  // namespace pagoda::hip
