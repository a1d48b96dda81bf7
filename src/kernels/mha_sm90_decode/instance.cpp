// One instance: the kernel of the shape named PAGODA_INSTANCE. The build compiles this file once
// for each line of kShapes and each machine: by nvcc for the chip, by the host compiler for the
// emulator.
#include "kernels/common/make_instance.hpp"
#include "kernels/mha_sm90_decode/kernel_of.hpp"

namespace pagoda::kernels {

template LaunchFunctions<Launcher, mha_sm90_decode::Family>
instance<Launcher, mha_sm90_decode::Family,
         shape_index(mha_sm90_decode::Family::kShapes, PAGODA_INSTANCE)>();

}  // namespace pagoda::kernels
