// One instance: all variants of the shape named PAGODA_INSTANCE. The build compiles this file once
// for each line of kShapes and each machine: by nvcc for the chip, by the host compiler for the
// emulator.
#include "kernels/common/make_instance.hpp"
#include "kernels/mha_sm100_d512/kernel_of.hpp"

namespace pagoda::kernels {

using mha_sm100_d512::Family;
template LaunchFunctions<Launcher, Family>
instance<Launcher, Family, shape_index(Family::kShapes, PAGODA_INSTANCE)>();

}  // namespace pagoda::kernels
