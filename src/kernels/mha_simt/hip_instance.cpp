// The shape named PAGODA_INSTANCE for AMD GPUs: kernels where clang compiles it for the chip, what
// launches them where the host compiler does.
#include "kernels/common/make_instance.hpp"
#include "kernels/mha_simt/kernel_of.hpp"

namespace pagoda::kernels {

template LaunchFunctions<Launcher, mha_simt::Amd>
instance<Launcher, mha_simt::Amd, shape_index(mha_simt::kShapes, PAGODA_INSTANCE)>();

}  // namespace pagoda::kernels
