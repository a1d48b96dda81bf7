// Epilogue of a row: normalisation of O, LSE and row maximum, and stores of O as elements of T.
#pragma once

#include <concepts>
#include <cstdint>

#include "arch/fault.hpp"
#include "arch/layout/types.hpp"
#include "arch/math.hpp"
#include "arch/memory.hpp"
#include "core/target.hpp"
#include "kernels/common/work_tile.hpp"
#include "softmax/online.hpp"

namespace pagoda::kernels {

template <class T>
PAGODA_DEVICE uint32_t pack_pair(float low, float high) {
  if constexpr (std::same_as<T, arch::Half>) {
    return arch::pack_f16(low, high);
  } else {
    return arch::pack_bf16(low, high);
  }
}

// The result of a row. LSE and row maximum are computed only where they are called for: they cost
// more than the rest.
struct RowResult {
  softmax::RowResult end{};
  float max = softmax::kMinusInfinity;
  float sink = softmax::kMinusInfinity;

  [[nodiscard]] PAGODA_DEVICE float row_max() const { return softmax::finish_max(max, sink); }
};

PAGODA_DEVICE RowResult finalize_row(const AttentionParams& params, int32_t kv_head, int32_t q_head,
                                     bool is_valid, softmax::Sums sums, float max) {
  RowResult result;
  if (!is_valid) return result;  // padding rows get zeros, whether there is a sink or not
  if (params.sinks != nullptr) {
    result.sink = arch::load_read_only(params.sinks + q_head);
    result.sink = arch::mutable_value("sink added twice", result.sink, result.sink + softmax::kLn2);
  }
  result.end = softmax::finish(
      sums, result.sink, arch::mutable_factor("V scale x 1.02", params.kv_scales.v_scale(kv_head)));
  result.max = max;
  return result;
}

// Stores what the call asks for.
PAGODA_DEVICE void store_lse_and_max(const AttentionParams& params, const Work& work, int32_t token,
                                     int32_t q_head, const RowResult& result) {
  const int64_t row = work.memory_row + token;
  if (params.lse != nullptr) {
    arch::store(params.lse + params.lse_rows.offset(work.sequence, row, q_head),
                arch::mutable_factor("LSE x 1.02", result.end.lse()) * params.lse_factor);
  }
  if (params.row_max != nullptr) {
    arch::store(params.row_max + params.row_max_rows.offset(work.sequence, row, q_head),
                result.row_max());
  }
}

// Stores two neighbouring elements of a row. `column` is even; is_aligned: the row starts at a
// multiple of 4 bytes.
template <class T>
PAGODA_DEVICE void store_pair(arch::GlobalPtr<T> row, int32_t column, uint32_t pair,
                              bool is_aligned) {
  if (is_aligned) {
    arch::store((row + column).template as<uint32_t>(), pair);
  } else {
    const auto elements = (row + column).template as<uint16_t>();
    arch::store(elements, static_cast<uint16_t>(pair));
    arch::store(elements + 1, static_cast<uint16_t>(pair >> 16U));
  }
}

// A factor of 0 gives 0 whatever O holds: no key was added to it, so it may be NaN.
template <class T>
PAGODA_DEVICE uint32_t scaled_pair(float low, float high, float factor) {
  return factor == 0 ? 0 : pack_pair<T>(low * factor, high * factor);
}

// The first element of `row` in O.
template <class T, class Row>
PAGODA_DEVICE arch::GlobalPtr<T> out_row(const AttentionParams& params, const Work& work,
                                         const Row& row) {
  return params.out_data.as<T>() +
         params.out_rows.offset(work.sequence, work.memory_row + row.token, row.q_head);
}

// Stores four neighbouring columns of a row, except those past the head dim.
template <class T>
PAGODA_DEVICE void store_quad(arch::GlobalPtr<T> row, int32_t dim, int32_t column,
                              const float (&o)[4], float factor) {
  const bool is_aligned = row.address() % 4 == 0;
  PAGODA_UNROLL
  for (int e = 0; e < 4; e += 2) {
    if (column + e >= dim) continue;
    store_pair(row, column + e, scaled_pair<T>(o[e], o[e + 1], factor), is_aligned);
  }
}

}  // namespace pagoda::kernels
