// HIP implementation of arch/mfma.hpp: builtins of clang.
//
// AMD Instinct MI300 ISA, "Matrix Arithmetic Instructions": v_mfma_f32_32x32x8 and
// v_mfma_f32_16x16x16, bf16 and f16. The vector types must be those of the builtin: clang converts
// between vectors of one size without a word.
#pragma once

#include <cstdint>

#include "arch/layout/types.hpp"
#include "arch/layout/where.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace hip {
namespace detail {

template <class T>
struct MfmaOperand;
template <>
struct MfmaOperand<BFloat16> {
  using Type = short __attribute__((ext_vector_type(4)));
};
template <>
struct MfmaOperand<Half> {
  using Type = _Float16 __attribute__((ext_vector_type(4)));
};

template <class T>
PAGODA_DEVICE typename MfmaOperand<T>::Type mfma_operand(const uint32_t (&words)[2]) {
  typename MfmaOperand<T>::Type operand;
  static_assert(sizeof operand == sizeof words);
  __builtin_memcpy(&operand, words, sizeof operand);
  return operand;
}

}  // namespace detail

template <class T>
PAGODA_DEVICE void mfma_32x32x8(float (&d)[16], const uint32_t (&a)[2], const uint32_t (&b)[2],
                                Where = Where::current()) {
  using Accumulator = float __attribute__((ext_vector_type(16)));
  Accumulator sum;
  __builtin_memcpy(&sum, d, sizeof sum);
  const auto from_a = detail::mfma_operand<T>(a), from_b = detail::mfma_operand<T>(b);
  if constexpr (__is_same(T, BFloat16)) {
    sum = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(from_a, from_b, sum, 0, 0, 0);
  } else {
    sum = __builtin_amdgcn_mfma_f32_32x32x8f16(from_a, from_b, sum, 0, 0, 0);
  }
  __builtin_memcpy(d, &sum, sizeof sum);
}

template <class T>
PAGODA_DEVICE void mfma_16x16x16(float (&d)[4], const uint32_t (&a)[2], const uint32_t (&b)[2],
                                 Where = Where::current()) {
  using Accumulator = float __attribute__((ext_vector_type(4)));
  Accumulator sum;
  __builtin_memcpy(&sum, d, sizeof sum);
  const auto from_a = detail::mfma_operand<T>(a), from_b = detail::mfma_operand<T>(b);
  if constexpr (__is_same(T, BFloat16)) {
    sum = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(from_a, from_b, sum, 0, 0, 0);
  } else {
    sum = __builtin_amdgcn_mfma_f32_16x16x16f16(from_a, from_b, sum, 0, 0, 0);
  }
  __builtin_memcpy(d, &sum, sizeof sum);
}

}  // namespace hip
}  // namespace pagoda::arch
