// MmaTypes: the kind and the element type in the instruction descriptor of tcgen05.mma, by operand
// type.
#pragma once

#include "arch/layout/instruction_descriptor.hpp"
#include "arch/layout/types.hpp"

namespace pagoda::kernels::sm100 {

template <class T>
struct MmaTypes;
template <>
struct MmaTypes<arch::BFloat16> {
  static constexpr arch::MmaKind kind = arch::MmaKind::kF16;
  static constexpr arch::MmaType type = arch::MmaType::kBF16;
};
template <>
struct MmaTypes<arch::Half> {
  static constexpr arch::MmaKind kind = arch::MmaKind::kF16;
  static constexpr arch::MmaType type = arch::MmaType::kF16;
};
template <>
struct MmaTypes<arch::Float8E4M3> {
  static constexpr arch::MmaKind kind = arch::MmaKind::kF8F6F4;
  static constexpr arch::MmaType type = arch::MmaType::kE4M3;
};

}  // namespace pagoda::kernels::sm100
