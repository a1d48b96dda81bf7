// The end of a row of O: its normalisation, LSE and row maximum, and stores of elements of T.
#pragma once

#include <concepts>
#include <cstdint>

#include "arch/debug.hpp"
#include "arch/layout/types.hpp"
#include "arch/math.hpp"
#include "arch/memory.hpp"
#include "core/target.hpp"
#include "kernels/common/work.hpp"
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

// What a row ends with. LSE and row maximum cost more than the rest: whoever wants them asks.
struct RowResult {
  softmax::RowEnd end{};
  float max = softmax::kMinusInfinity;
  float sink = softmax::kMinusInfinity;

  [[nodiscard]] PAGODA_DEVICE float row_max() const { return softmax::finish_max(max, sink); }
};

PAGODA_DEVICE RowResult end_row(const AttentionParams& params, int32_t kv_head, int32_t q_head,
                                bool is_valid, softmax::Sums sums, float max) {
  RowResult result;
  if (!is_valid) return result;  // rows past the sequence's valid ones: zeros, sink or not
  if (params.sinks != nullptr) {
    result.sink = arch::load_read_only(params.sinks + q_head);
    result.sink = arch::mutable_value("sink added twice", result.sink, result.sink + softmax::kLn2);
  }
  result.end = softmax::finish(
      sums, result.sink, arch::mutable_factor("V scale x 1.02", params.kv_scales.v_scale(kv_head)));
  result.max = max;
  return result;
}

PAGODA_DEVICE void store_statistics(const AttentionParams& params, const Work& work, int32_t token,
                                    int32_t q_head, const RowResult& result) {
  const int64_t row = work.memory_row + token;
  if (params.lse != nullptr) {
    arch::store(params.lse + params.lse_rows.offset(work.sequence, row, q_head),
                arch::mutable_factor("LSE x 1.02", result.end.lse()));
  }
  if (params.row_max != nullptr) {
    arch::store(params.row_max + params.row_max_rows.offset(work.sequence, row, q_head),
                result.row_max());
  }
}

// Two neighbouring elements of a row; `column` is even, both are there or none.
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

// 0 where nothing is to be read from O: it may hold anything then.
template <class T>
PAGODA_DEVICE uint32_t scaled_pair(float low, float high, float factor) {
  return factor == 0 ? 0 : pack_pair<T>(low * factor, high * factor);
}

// Where `row` of O begins.
template <class T, class Row>
PAGODA_DEVICE arch::GlobalPtr<T> out_row(const AttentionParams& params, const Work& work,
                                         const Row& row) {
  return params.out_data.as<T>() +
         params.out_rows.offset(work.sequence, work.memory_row + row.token, row.q_head);
}

// Four neighbouring columns of a row, those of them that are the head's.
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
