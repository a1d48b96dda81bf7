// pagoda_tensor as the tensors and arrays of the C++ API. Null = absent.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "pagoda/pagoda.h"
#include "pagoda/status.hpp"
#include "pagoda/tensor.hpp"

namespace pagoda::c_api {

[[nodiscard]] Status to_tensor(std::string_view name, const pagoda_tensor* from, Tensor& to);
[[nodiscard]] Status to_tensor(std::string_view name, const pagoda_tensor* from, ConstTensor& to);

// One dimension without gaps, at least `least` elements if it is present.
[[nodiscard]] Status to_array(std::string_view name, const pagoda_tensor* from,
                              std::span<const int32_t>& to, int64_t least);
[[nodiscard]] Status to_array(std::string_view name, const pagoda_tensor* from,
                              std::span<const int64_t>& to, int64_t least);
[[nodiscard]] Status to_array(std::string_view name, const pagoda_tensor* from,
                              std::span<const uint32_t>& to, int64_t least);
[[nodiscard]] Status to_array(std::string_view name, const pagoda_tensor* from,
                              std::span<const float>& to, int64_t least);

}  // namespace pagoda::c_api
