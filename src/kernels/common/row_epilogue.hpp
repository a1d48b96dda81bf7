// Epilogue of a row: normalisation of O, LSE and row maximum, and stores of O.
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

PAGODA_DEVICE RowResult finalize_row(const AttentionParams& params, const Work& work,
                                     int32_t q_head, bool is_valid, softmax::Sums sums, float max) {
  RowResult result;
  if (!is_valid) return result;  // padding rows get zeros, whether there is a sink or not
  if (params.sinks != nullptr) {
    result.sink = arch::load_read_only(params.sinks + q_head);
    result.sink = arch::mutable_value("sink added twice", result.sink, result.sink + softmax::kLn2);
  }
  result.end = softmax::finish(sums, result.sink,
                               arch::mutable_factor("V scale x 1.02", v_scale(params, work)));
  result.max = max;
  return result;
}

// Whether a call wants nothing of its rows but O, and has no sinks. o_factor() is then all of
// finalize_row(), without the code for the rest, which takes longer than a short KV tile.
[[nodiscard]] PAGODA_DEVICE bool wants_only_o(const AttentionParams& params) {
  return params.sinks == nullptr && params.lse == nullptr && params.row_max == nullptr;
}
[[nodiscard]] PAGODA_DEVICE float o_factor(const AttentionParams& params, const Work& work,
                                           bool is_valid, softmax::Sums sums) {
  if (!is_valid || !sums.has_keys()) return 0;
  return arch::mutable_factor("V scale x 1.02", v_scale(params, work)) / sums.sum;
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

// The factor of O in a row, from the sums and the maximum of all its keys. Stores LSE and row
// maximum if the call asks for them and `stores_them`.
template <class Row>
PAGODA_DEVICE float finish_row(const AttentionParams& params, const Work& work, const Row& row,
                               softmax::Sums sums, float max, bool stores_them) {
  if (wants_only_o(params)) return o_factor(params, work, row.is_valid, sums);
  const RowResult result = finalize_row(params, work, row.q_head, row.is_valid, sums, max);
  if (stores_them) store_lse_and_max(params, work, row.token, row.q_head, result);
  return result.end.o_factor;
}

// A factor of 0 gives 0 whatever O holds: no key was added to it, so it may be NaN.
template <class T>
PAGODA_DEVICE uint32_t scaled_pair(float low, float high, float factor) {
  return factor == 0 ? 0 : pack_pair<T>(low * factor, high * factor);
}

// --- O as T, the kernel's own type ---------------------------------------------------------------

// Offset in O of the first element of `row`.
template <class Row>
PAGODA_DEVICE int64_t out_offset(const AttentionParams& params, const Work& work, const Row& row) {
  return params.out_rows.offset(work.sequence, work.memory_row + row.token, row.q_head);
}
template <class T, class Row>
PAGODA_DEVICE arch::GlobalPtr<T> out_row(const AttentionParams& params, const Work& work,
                                         const Row& row) {
  return params.out_data.as<T>() + out_offset(params, work, row);
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

// --- O of every other dtype ----------------------------------------------------------------------

template <class T>
PAGODA_DEVICE bool is_out_of(const AttentionParams& params) {
  return params.out_dtype == (std::same_as<T, arch::Half> ? DType::kF16 : DType::kBF16);
}

PAGODA_DEVICE void store_element(const AttentionParams& params, int64_t offset, float value) {
  if (params.out_dtype == DType::kF32) {
    arch::store(params.out_data.as<float>() + offset, value);
  } else if (params.out_dtype == DType::kF8E4M3) {
    arch::store(params.out_data.as<uint8_t>() + offset,
                static_cast<uint8_t>(arch::pack_e4m3(value * params.out_factor, 0)));
  } else {
    const bool is_f16 = params.out_dtype == DType::kF16;
    const uint32_t bits = is_f16 ? arch::pack_f16(value, 0) : arch::pack_bf16(value, 0);
    arch::store(params.out_data.as<uint16_t>() + offset, static_cast<uint16_t>(bits));
  }
}

// Stores `count` elements of the row at offset `row` of O, except those past the head dim: element
// i is value(i), of column column_of(i). They pass through `scratch`, shared memory of this thread
// alone, element i at scratch[i * stride], and through a loop that is not unrolled: such calls are
// rare and must take neither code nor registers from the others.
template <int count, int stride, class Value, class Column>
PAGODA_DEVICE void store_converted(const AttentionParams& params, int64_t row, float factor,
                                   arch::SharedPtr<float> scratch, const Value& value,
                                   const Column& column_of) {
  PAGODA_UNROLL
  for (int i = 0; i < count; ++i) {
    arch::store(scratch + i * stride, factor == 0 ? 0 : value(i) * factor);
  }
  PAGODA_NO_UNROLL
  for (int i = 0; i < count; ++i) {
    const int32_t column = column_of(i);
    if (column < params.dim_vo) {
      store_element(params, row + column, arch::load(scratch + i * stride));
    }
  }
}
// Four neighbouring elements, without scratch memory, in a loop that is not unrolled either.
PAGODA_DEVICE void store_converted_quad(const AttentionParams& params, int64_t row, float factor,
                                        int32_t column, const float (&o)[4]) {
  PAGODA_NO_UNROLL
  for (int i = 0; i < 4; ++i) {
    const float value = i == 0 ? o[0] : i == 1 ? o[1] : i == 2 ? o[2] : o[3];
    if (column + i >= params.dim_vo) break;
    store_element(params, row + column + i, factor == 0 ? 0 : value * factor);
  }
}

}  // namespace pagoda::kernels
