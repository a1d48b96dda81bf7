// Launches the padding_rows kernel.
#include "arch/ptx/device.hpp"
#include "arch/ptx/launch.hpp"
#include "backends/cuda/states.hpp"
#include "kernels/padding_rows/padding_rows.hpp"

namespace pagoda::cuda {

void zero_padding_rows(const core::Problem& problem, const core::RunContext& context) {
  const kernels::PaddingRowsParams params = kernels::make_padding_rows_params(problem);
  const arch::Dim3 grid = kernels::grid_of(params);
  if (grid.x == 0) return;
  const arch::DeviceGuard device(problem.device.index);
  arch::check(arch::launch<kernels::PaddingRowsKernel>(
                  grid, params, {.stream = static_cast<cudaStream_t>(context.stream.handle)}),
              "launching padding_rows");
}

}  // namespace pagoda::cuda
