// Loads of elements of any type as fp32, one by one: rows may start at any element.
#pragma once

#include <cstdint>

#include "arch/memory.hpp"
#include "core/element.hpp"
#include "core/target.hpp"
#include "pagoda/dtype.hpp"

namespace pagoda::mha_simt {

template <DType dtype>
PAGODA_DEVICE float load_element(arch::GlobalPtr<const void> data, int64_t index) {
  if constexpr (dtype == DType::kF32) {
    return arch::load_read_only(data.as<const float>() + index);
  } else if constexpr (dtype == DType::kF8E4M3) {
    return core::f8e4m3_to_float(arch::load_read_only(data.as<const uint8_t>() + index));
  } else {
    const uint16_t bits = arch::load_read_only(data.as<const uint16_t>() + index);
    return dtype == DType::kF16 ? core::f16_to_float(bits) : core::bf16_to_float(bits);
  }
}

// Calls visit.operator()<dtype>().
template <class Visit>
PAGODA_DEVICE void with_dtype(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::kF32: visit.template operator()<DType::kF32>(); return;
    case DType::kF16: visit.template operator()<DType::kF16>(); return;
    case DType::kBF16: visit.template operator()<DType::kBF16>(); return;
    case DType::kF8E4M3: visit.template operator()<DType::kF8E4M3>(); return;
  }
}

}  // namespace pagoda::mha_simt
