// Multiplies columns of O in tensor memory where a maximum has moved.
#pragma once

#include <cstdint>

#include "arch/tcgen05.hpp"
#include "core/element.hpp"
#include "core/target.hpp"

namespace pagoda::kernels::sm100 {

// A warp's lanes of the first `columns` (at most `most`) columns from `o` on, in whole batches. Two batches,
// one on its way while the other is multiplied.
template <int most>
PAGODA_DEVICE void rescale_columns(arch::TmemPtr o, int32_t columns, float factor) {
  constexpr int batch = 16;
  uint32_t values[2][batch];
  arch::tmem_load<arch::TmemShape::k32x32b, batch>(values[0], o);
  PAGODA_UNROLL
  for (int j = 0; j < most / batch; ++j) {
    if (j * batch >= columns) break;
    arch::tmem_wait_load(values[j % 2]);
    if ((j + 1) * batch < columns && j + 1 < most / batch) {
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
