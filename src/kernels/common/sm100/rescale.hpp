// Rescales O in tensor memory after the maximum of a row has grown.
#pragma once

#include <cstdint>

#include "arch/tcgen05.hpp"
#include "core/element.hpp"
#include "core/target.hpp"

namespace pagoda::kernels::sm100 {

// Multiplies the first `columns` columns from `o` on, in this warp's lanes, by `factor`. `columns`
// is at most `max_columns` and is rounded up to whole batches. Two batches of registers alternate:
// one is loaded while the other is multiplied.
template <int max_columns>
PAGODA_DEVICE void rescale_output(arch::TmemPtr o, int32_t columns, float factor) {
  constexpr int batch = 16;
  uint32_t values[2][batch];
  arch::tmem_load<arch::TmemShape::k32x32b, batch>(values[0], o);
  PAGODA_UNROLL
  for (int j = 0; j < max_columns / batch; ++j) {
    if (j * batch >= columns) break;
    arch::tmem_wait_load(values[j % 2]);
    if ((j + 1) * batch < columns && j + 1 < max_columns / batch) {
      arch::tmem_load<arch::TmemShape::k32x32b, batch>(values[(j + 1) % 2],
                                                       o.columns((j + 1) * batch));
    }
    PAGODA_UNROLL
    for (int i = 0; i < batch; ++i) {
      values[j % 2][i] = core::float_to_bits(core::bits_to_float(values[j % 2][i]) * factor);
    }
    arch::tmem_store<arch::TmemShape::k32x32b, batch>(o.columns(j * batch), values[j % 2]);
  }
  arch::tmem_wait_store();
}

}  // namespace pagoda::kernels::sm100
