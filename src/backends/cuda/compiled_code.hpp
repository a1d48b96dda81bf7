// The GPU code of this build. CMake defines the list, PAGODA_HELD_ARCHS ("80.90.100.103"), for
// every source here.
#pragma once

#include <cstdint>
#include <string>

#include "backends/cuda/held_archs.hpp"
#include "kernels/common/archs.hpp"

namespace pagoda::cuda {

// append_kv and merge_states have SASS for 8.0, 9.0, 10.0 and 12.0, which also runs on later minor
// versions, and PTX for 8.0 for newer GPUs.
inline constexpr int32_t kLeastArch = 80;

// Whether PAGODA_CUDA_ARCHITECTURES selected `arch`. Attention kernels are then compiled for it, by
// every family whose Archs have it; for 80 with PTX.
[[nodiscard]] constexpr bool is_held(int32_t arch) { return is_listed(PAGODA_HELD_ARCHS, arch); }
// Whether this build has code of the family that runs on a GPU of compute capability `arch`.
[[nodiscard]] bool has_code(const kernels::Archs& archs, int32_t arch);
// Whether it has any attention kernel that runs there.
[[nodiscard]] bool has_attention_code(int32_t arch);

// The architectures of this build: "sm_80, sm_90a"; empty: none.
[[nodiscard]] std::string held_code();
// What `archs` are compiled for, where this build lacks it.
[[nodiscard]] std::string missing_code(const kernels::Archs& archs);

}  // namespace pagoda::cuda
