// The GPU code of this build. CMake defines the list, PAGODA_HELD_ARCHS ("90.100.103"), for every
// source here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace pagoda::cuda {

// append_kv and merge_states have SASS for 8.0, 9.0, 10.0 and 12.0, which also runs on later minor
// versions, and PTX for 8.0 for newer GPUs.
inline constexpr int32_t kLeastArch = 80;

// Attention kernels exist for sm_90a, sm_100a and sm_103a; PAGODA_CUDA_ARCHITECTURES selects.
[[nodiscard]] constexpr bool has_attention_code(int32_t arch) {
  int32_t held = 0;
  for (const char c : std::string_view(PAGODA_HELD_ARCHS ".")) {
    if (c != '.') {
      held = 10 * held + (c - '0');
    } else {
      if (held != 0 && held == arch) return true;
      held = 0;
    }
  }
  return false;
}
// The architectures of `archs` that this build has: "sm_90a, sm_100a".
[[nodiscard]] std::string held_code(std::span<const int32_t> archs);
[[nodiscard]] std::string held_code();  // of all architectures
// The architectures of `archs` that this build lacks.
[[nodiscard]] std::string missing_code(std::span<const int32_t> archs);

}  // namespace pagoda::cuda
