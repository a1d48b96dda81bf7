// The last V tile of a sequence: rows past its end. Their P is 0, but 0 * NaN is NaN, so the load
// warp writes zeros over them before the MMAs read the tile.
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "arch/thread.hpp"

namespace pagoda::kernels::sm100 {

// Zeroes rows [first, end) of a V tile in shared memory: `panels` panels, each [rows] lines of
// `line_bytes`. The swizzle permutes 16-byte vectors within a line, so whole lines need no swizzle.
// All lanes of a warp call.
template <int panels, int rows, int line_bytes, class T>
PAGODA_DEVICE void zero_rows(arch::SharedPtr<T> tile, int first, int end) {
  constexpr int vectors = line_bytes / 16;  // of a line
  const auto to = tile.template as<arch::Words<4>>();
  for (int i = arch::lane_idx(); i < (end - first) * vectors; i += 32) {
    PAGODA_UNROLL
    for (int panel = 0; panel < panels; ++panel) {
      arch::store(to + ((panel * rows + first) * vectors + i), arch::Words<4>{{0, 0, 0, 0}});
    }
  }
}

}  // namespace pagoda::kernels::sm100
