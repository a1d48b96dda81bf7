// The merge_states kernel of AMD GPUs, which states.cpp launches.
#include "kernels/merge_states/merge_states.hpp"

using Kernel = pagoda::kernels::MergeStatesRows<64>;

extern "C"
    __attribute__((global, amdgpu_flat_work_group_size(Kernel::kThreads, Kernel::kThreads))) void
    pagoda_merge_states(const pagoda::kernels::MergeStatesParams params) {
  Kernel::run(params);
}
