// Real half of arch/fault.hpp: there are none.
#pragma once

#include <cstdint>

#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

PAGODA_DEVICE constexpr uint32_t mutable_stage(const char* /*ring*/, uint32_t stage) {
  return stage;
}
template <class T>
PAGODA_DEVICE constexpr T mutable_place(const char* /*fault*/, T own, T /*other*/) {
  return own;
}

}  // namespace ptx
}  // namespace pagoda::arch
