// store_lines: stores O from accumulators 16 bytes a lane. Four lanes share a row, and each has two
// of every eight columns: by pairs a warp would write half of a sector of eight rows at a time, and
// 64 KiB of O took a CTA 13,200 cycles (mha_sm90/notes/latent.md).
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "arch/warp.hpp"
#include "kernels/common/row_epilogue.hpp"

namespace pagoda::kernels {

// Whether O has the type T and all `depth` columns, in rows that begin at multiples of 16 bytes.
template <class T, int depth>
PAGODA_DEVICE bool has_whole_lines(const AttentionParams& params) {
  constexpr int mask = 16 / sizeof(T) - 1;
  const RowsView& rows = params.out_rows;
  return is_out_of<T>(params) && params.dim_vo == depth && params.out_data.address() % 16 == 0 &&
         ((rows.sequence_stride | rows.row_stride | rows.head_stride) & mask) == 0;
}

// Lane i of four neighbouring ones gets word i of each. All lanes of a warp call it.
PAGODA_DEVICE void transpose_words(uint32_t (&words)[4]) {
  PAGODA_UNROLL
  for (int step = 1; step <= 2; step *= 2) {
    const bool is_odd = (arch::lane_idx() & step) != 0;
    PAGODA_UNROLL
    for (int i = 0; i < 4; ++i) {
      if ((i & step) != 0) continue;
      const uint32_t received = arch::shuffle_xor(is_odd ? words[i] : words[i + step], step);
      words[i] = is_odd ? received : words[i];
      words[i + step] = is_odd ? words[i + step] : received;
    }
  }
}

// Of a row of has_whole_lines(), which begins at `row`, columns from `first` on: o[4 * k + of_row]
// and the one after it of k = 0, 1, .., 8 columns apart, times `factor`; 0 gives 0 whatever O
// holds. All lanes of a warp call it; those with `is_written` store.
template <class T, int count>
PAGODA_DEVICE void store_lines(arch::GlobalPtr<T> row, int32_t first, const float (&o)[count],
                               int of_row, float factor, bool is_written) {
  static_assert(count % 16 == 0);
  const int lane = arch::lane_idx() % 4;
  PAGODA_UNROLL
  for (int i = 0; i < count; i += 16) {
    uint32_t words[4];
    PAGODA_UNROLL
    for (int k = 0; k < 4; ++k) {
      words[k] = scaled_pair<T>(o[i + 4 * k + of_row], o[i + 4 * k + of_row + 1], factor);
    }
    transpose_words(words);
    if (!is_written) continue;
    arch::store((row + (first + 2 * i + 8 * lane)).template as<arch::Words<4>>(),
                arch::Words<4>{{words[0], words[1], words[2], words[3]}});
  }
}

}  // namespace pagoda::kernels
