// The GPU code of this build.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace pagoda::cuda {

// append_kv and merge_states have SASS for 8.0, 9.0, 10.0 and 12.0, which also runs on later minor
// versions, and PTX for 8.0 for newer GPUs.
inline constexpr int32_t kLeastArch = 80;

// True where this build has attention kernels for exactly `arch`. They exist for sm_90a, sm_100a and
// sm_103a; PAGODA_CUDA_ARCHITECTURES selects.
[[nodiscard]] bool has_attention_code(int32_t arch);
// The architectures of `archs` that this build has: "sm_90a, sm_100a".
[[nodiscard]] std::string held_code(std::span<const int32_t> archs);
[[nodiscard]] std::string held_code();  // of all architectures
// The architectures of `archs` that this build lacks.
[[nodiscard]] std::string missing_code(std::span<const int32_t> archs);

}  // namespace pagoda::cuda
