// ElementType: the element type of a kernel, from its public name.
#pragma once

#include "arch/layout/types.hpp"
#include "pagoda/dtype.hpp"

namespace pagoda::kernels {

template <DType dtype>
struct ElementOf;
template <>
struct ElementOf<DType::kBF16> {
  using type = arch::BFloat16;
};
template <>
struct ElementOf<DType::kF16> {
  using type = arch::Half;
};
template <>
struct ElementOf<DType::kF8E4M3> {
  using type = arch::Float8E4M3;
};

template <DType dtype>
using ElementType = typename ElementOf<dtype>::type;

}  // namespace pagoda::kernels
