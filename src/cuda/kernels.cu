// Gathers the rows of src/kernels: one line for each architecture's kernels.
#include <vector>

#include "cuda/kernels.hpp"
#include "cuda/sm100.hpp"
#include "cuda/sm100_deep.hpp"
#include "cuda/sm90.hpp"

namespace pagoda::cuda {

std::span<const core::Kernel> kernels() {
  static const std::vector<core::Kernel> kAll = [] {
    std::vector<core::Kernel> all;
    for (const auto rows : {sm90_kernels(), sm100_kernels(), sm100_deep_kernels()}) {
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }();
  return kAll;
}

}  // namespace pagoda::cuda
