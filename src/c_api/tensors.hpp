// pagoda_tensor as the tensors and arrays of the C++ API. Null = absent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pagoda/array_view.hpp"
#include "pagoda/pagoda.h"
#include "pagoda/status.hpp"
#include "pagoda/tensor.hpp"

namespace pagoda::c_api {

// The element types that a field may have at all: the first so many of fp32, fp16, bf16, fp8_e4m3.
enum class ElementTypes : uint8_t { kFloat32 = 1, kNotFp8 = 3, kAll = 4 };

[[nodiscard]] Status to_tensor(std::string_view name, const pagoda_tensor* from, Tensor& to,
                               ElementTypes allowed = ElementTypes::kAll);
[[nodiscard]] Status to_tensor(std::string_view name, const pagoda_tensor* from, ConstTensor& to,
                               ElementTypes allowed = ElementTypes::kAll);

// One dimension without gaps, at least `least` elements if it is present. T: int32_t, int64_t,
// uint32_t, uint8_t or float.
template <typename T>
[[nodiscard]] Status to_array(std::string_view name, const pagoda_tensor* from, ArrayView<T>& to,
                              int64_t least);

// int32, two dimensions, rows without gaps.
[[nodiscard]] Status to_matrix(std::string_view name, const pagoda_tensor& from,
                               MatrixView<int32_t>& to);

}  // namespace pagoda::c_api
