// Which GPU code this build holds. CMake gives every source of this folder the list, PAGODA_HELD_ARCHS.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace pagoda::cuda {

// append_kv and merge_states: SASS of 8.0, 9.0, 10.0 and 12.0, which serves all later minor versions, and PTX
// of 8.0 for what is newer.
inline constexpr int32_t kLeastArch = 80;

// Attention kernels: for 90, 100 and 103, of which CMake's PAGODA_CUDA_ARCHITECTURES chooses.
inline constexpr std::initializer_list<int32_t> kHeldArchs = {PAGODA_HELD_ARCHS};

[[nodiscard]] bool has_attention_code(int32_t arch);
// "sm_90a, sm_100a": those of `archs` that this build has.
[[nodiscard]] std::string held_code(std::span<const int32_t> archs);
[[nodiscard]] std::string held_code();  // all of them
// Those that it lacks.
[[nodiscard]] std::string missing_code(std::span<const int32_t> archs);

}  // namespace pagoda::cuda
