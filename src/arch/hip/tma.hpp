// AMD half of arch/tma.hpp: names for headers that also serve GPUs without TMA. A kernel that calls
// one does not compile.
#pragma once

#include <cstdint>

#include "core/target.hpp"

namespace pagoda::arch {
inline namespace hip {

struct TensorMap;

template <int Rank, class... Arguments>
PAGODA_DEVICE void tma_load(const Arguments&...) = delete;
template <int Rank, class... Arguments>
PAGODA_DEVICE void tma_load_pair(const Arguments&...) = delete;

}  // namespace hip
}  // namespace pagoda::arch
