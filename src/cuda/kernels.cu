// Gathers the rows of src/kernels: one line for each architecture's kernels.
#include "cuda/kernels.hpp"
#include "cuda/sm90.hpp"

namespace pagoda::cuda {

std::span<const core::Kernel> kernels() { return sm90_kernels(); }

}  // namespace pagoda::cuda
