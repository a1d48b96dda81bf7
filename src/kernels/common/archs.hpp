// Archs: the GPUs that a family of kernels is for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace pagoda::kernels {

enum class Vendor : uint8_t { kNvidia, kAmd };

// NVIDIA: compute capabilities, as 10 * major + minor. AMD: 942 for gfx942.
struct Archs {
  // NVIDIA: what nvcc compiles the family for: sm_90a, sm_100a and sm_103a run on exactly that GPU.
  std::span<const int32_t> compiled;
  // The first of them comes with PTX, from which the driver makes code for every later GPU.
  bool has_ptx = false;
  Vendor vendor = Vendor::kNvidia;

  [[nodiscard]] constexpr bool is_compiled_for(int32_t arch) const {
    return std::find(compiled.begin(), compiled.end(), arch) != compiled.end();
  }
  [[nodiscard]] constexpr bool run_on(int32_t arch, Vendor of = Vendor::kNvidia) const {
    return of == vendor && (is_compiled_for(arch) || (has_ptx && arch >= compiled.front()));
  }
};

}  // namespace pagoda::kernels
