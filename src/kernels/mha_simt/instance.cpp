// One instance: the shape named PAGODA_INSTANCE. The build compiles this file once for each line of
// kShapes and each machine: by nvcc for the chip, by the host compiler for the emulator, which has
// both families. Code for AMD GPUs: hip_instance.cpp.
#include "kernels/common/make_instance.hpp"
#include "kernels/mha_simt/kernel_of.hpp"

namespace pagoda::kernels {

template LaunchFunctions<Launcher, mha_simt::Nvidia>
instance<Launcher, mha_simt::Nvidia, shape_index(mha_simt::kShapes, PAGODA_INSTANCE)>();

#if !PAGODA_ON_NVIDIA
template LaunchFunctions<Launcher, mha_simt::Amd>
instance<Launcher, mha_simt::Amd, shape_index(mha_simt::kShapes, PAGODA_INSTANCE)>();
#endif

}  // namespace pagoda::kernels
