// The padding_rows kernel of AMD GPUs, which states.cpp launches.
#include "kernels/padding_rows/padding_rows.hpp"

using Kernel = pagoda::kernels::PaddingRows<64>;

extern "C"
    __attribute__((global, amdgpu_flat_work_group_size(Kernel::kThreads, Kernel::kThreads))) void
    pagoda_padding_rows(const pagoda::kernels::PaddingRowsParams params) {
  Kernel::run(params);
}
