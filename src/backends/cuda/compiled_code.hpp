// Which GPU code this build holds. CMake gives the sources of this folder the list, PAGODA_HELD_ARCHS: "90.100.103".
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace pagoda::cuda {

// append_kv and merge_states: SASS of 8.0, 9.0, 10.0 and 12.0, which serves all later minor versions, and PTX
// of 8.0 for what is newer.
inline constexpr int32_t kLeastArch = 80;

// Attention kernels: for 90, 100 and 103, of which CMake's PAGODA_CUDA_ARCHITECTURES chooses.
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
// "sm_90a, sm_100a": those of `archs` that this build has.
[[nodiscard]] std::string held_code(std::span<const int32_t> archs);
[[nodiscard]] std::string held_code();  // all of them
// Those that it lacks.
[[nodiscard]] std::string missing_code(std::span<const int32_t> archs);

}  // namespace pagoda::cuda
