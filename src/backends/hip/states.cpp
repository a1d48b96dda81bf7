// Launches the kernels of append_kv.hip, merge_states.hip and padding_rows.hip.
#include "backends/hip/states.hpp"

#include "arch/hip/device.hpp"
#include "arch/hip/launch.hpp"
#include "backends/hip/devices.hpp"
#include "kernels/append_kv/append_kv_params.hpp"
#include "kernels/merge_states/merge_states_params.hpp"
#include "kernels/padding_rows/padding_rows_params.hpp"

namespace pagoda::hip {
namespace {

template <class Params>
void launch(arch::HipKernel& kernel, int32_t threads, const Params& params, Device device,
            const core::RunContext& context, const char* what) {
  const arch::Dim3 grid = kernels::grid_of(params);
  if (grid.x == 0) return;
  const arch::DeviceGuard guard(device.index);
  arch::launch(kernel, {.grid = grid, .threads = threads}, std::as_bytes(std::span(&params, 1)),
               static_cast<arch::HipStream>(context.stream.handle), what);
}

}  // namespace

Status append_kv(const AppendKV& append, const core::RunContext& context) {
  if (Status s = check_device("k_new.device", append.k_new.device); !s) return s;
  static arch::HipKernel kernel("append_kv", "pagoda_append_kv");
  launch(kernel, 2 * kernels::kAppendKVThreadsPerSide, kernels::make_params(append),
         append.k_new.device, context, "launching append_kv");
  return {};
}

Status merge_states(const MergeStates& merge, const core::RunContext& context) {
  if (Status s = check_device("partial_out.device", merge.partial_out.device); !s) return s;
  static arch::HipKernel kernel("merge_states", "pagoda_merge_states");
  constexpr int32_t kWavefront = 64;
  launch(kernel, kWavefront * kernels::kMergeStatesRowsPerBlock, kernels::make_params(merge),
         merge.partial_out.device, context, "launching merge_states");
  return {};
}

void zero_padding_rows(const core::Problem& problem, const core::RunContext& context) {
  static arch::HipKernel kernel("padding_rows", "pagoda_padding_rows");
  launch(kernel, kernels::kPaddingRowsThreads, kernels::make_padding_rows_params(problem),
         problem.device, context, "launching padding_rows");
}

}  // namespace pagoda::hip
