// The append_kv kernel of AMD GPUs, which states.cpp launches.
#include "kernels/append_kv/append_kv.hpp"

using Kernel = pagoda::kernels::AppendKVRows<64>;

extern "C"
    __attribute__((global, amdgpu_flat_work_group_size(Kernel::kThreads, Kernel::kThreads))) void
    pagoda_append_kv(const pagoda::kernels::AppendKVParams params) {
  Kernel::run(params);
}
