// Launches the append_kv kernel.
#include "arch/ptx/device.hpp"
#include "arch/ptx/launch.hpp"
#include "backends/cuda/devices.hpp"
#include "backends/cuda/states.hpp"
#include "kernels/append_kv/append_kv.hpp"

namespace pagoda::cuda {

Status append_kv(const AppendKV& append, const core::RunContext& context) {
  if (Status s = check_device("k_new.device", append.k_new.device); !s) return s;
  const kernels::AppendKVParams params = kernels::make_params(append);
  const arch::Dim3 grid = kernels::grid_of(params);
  if (grid.x == 0) return {};
  const arch::DeviceGuard device(append.k_new.device.index);
  arch::check(arch::launch<kernels::AppendKVKernel>(
                  grid, params, {.stream = static_cast<cudaStream_t>(context.stream.handle)}),
              "launching append_kv");
  return {};
}

}  // namespace pagoda::cuda
