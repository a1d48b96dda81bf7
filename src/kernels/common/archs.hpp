// Archs: the GPUs that a family of kernels is for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace pagoda::kernels {

// Compute capabilities, as 10 * major + minor.
struct Archs {
  // What nvcc compiles the family for: sm_90a, sm_100a and sm_103a run on exactly that GPU.
  std::span<const int32_t> compiled;
  // The first of them comes with PTX, from which the driver makes code for every later GPU.
  bool has_ptx = false;

  [[nodiscard]] constexpr bool is_compiled_for(int32_t arch) const {
    return std::find(compiled.begin(), compiled.end(), arch) != compiled.end();
  }
  [[nodiscard]] constexpr bool run_on(int32_t arch) const {
    return is_compiled_for(arch) || (has_ptx && arch >= compiled.front());
  }
};

}  // namespace pagoda::kernels
