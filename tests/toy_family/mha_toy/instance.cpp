// One instance: the shape named PAGODA_INSTANCE.
#include "kernels/common/make_instance.hpp"
#include "kernels/mha_toy/kernel_of.hpp"

namespace pagoda::kernels {

using mha_toy::Family;
template LaunchFunctions<Launcher, Family>
instance<Launcher, Family, shape_index(Family::kShapes, PAGODA_INSTANCE)>();

}  // namespace pagoda::kernels
