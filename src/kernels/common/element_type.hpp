// kDType: the public name of a kernel's element type.
#pragma once

#include "arch/layout/types.hpp"
#include "pagoda/dtype.hpp"

namespace pagoda::kernels {

template <class T>
inline constexpr DType kDType = DType::kF32;  // of no attention kernel
template <>
inline constexpr DType kDType<arch::BFloat16> = DType::kBF16;
template <>
inline constexpr DType kDType<arch::Half> = DType::kF16;
template <>
inline constexpr DType kDType<arch::Float8E4M3> = DType::kF8E4M3;

}  // namespace pagoda::kernels
