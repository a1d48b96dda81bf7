// One instance: all variants of the shape named PAGODA_INSTANCE. The build compiles this file once
// for each line of kShapes and each machine: by clang for the chip, by the host compiler for the
// emulator.
#include "kernels/common/make_instance.hpp"
#include "kernels/mha_gfx942/kernel_of.hpp"

namespace pagoda::kernels {

template LaunchFunctions<Launcher, mha_gfx942::Family>
instance<Launcher, mha_gfx942::Family, shape_index(mha_gfx942::Family::kShapes, PAGODA_INSTANCE)>();

}  // namespace pagoda::kernels
