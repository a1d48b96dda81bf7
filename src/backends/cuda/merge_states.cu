// Launches the merge_states kernel.
#include "arch/ptx/device.hpp"
#include "arch/ptx/launch.hpp"
#include "backends/cuda/devices.hpp"
#include "backends/cuda/states.hpp"
#include "kernels/merge_states/merge_states.hpp"

namespace pagoda::cuda {

Status merge_states(const MergeStates& merge, const core::RunContext& context) {
  if (Status s = check_device("partial_out.device", merge.partial_out.device); !s) return s;
  const kernels::MergeStatesParams params = kernels::make_params(merge);
  const arch::Dim3 grid = kernels::grid_of(params);
  if (grid.x == 0) return {};
  const arch::DeviceGuard device(merge.partial_out.device.index);
  arch::check(arch::launch<kernels::MergeStatesKernel>(
                  grid, params, {.stream = static_cast<cudaStream_t>(context.stream.handle)}),
              "launching merge_states");
  return {};
}

}  // namespace pagoda::cuda
