// PTX implementation of arch/ldmatrix.hpp: ldmatrix (sm_75) and stmatrix (sm_90), with and without
// .trans.
//
// PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions": ldmatrix, stmatrix. Every row
// address is 16-byte aligned. Both are weak accesses of the generic proxy: syncwarp or a barrier
// orders them against other threads.
#pragma once

#include <cstdint>

#include "arch/layout/where.hpp"
#include "arch/ptx/memory.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

// clang-format off

// TRANS: "" or ".trans".
#define PAGODA_LDMATRIX(TRANS)                                                                     \
  static_assert(Count == 1 || Count == 2 || Count == 4, "ldmatrix loads 1, 2 or 4 matrices");      \
  if constexpr (Count == 1) {                                                                      \
    asm volatile("ldmatrix.sync.aligned.m8n8.x1" TRANS ".shared.b16 {%0}, [%1];"                   \
                 : "=r"(out[0]) : "r"(row.address()) : "memory");                                  \
  } else if constexpr (Count == 2) {                                                               \
    asm volatile("ldmatrix.sync.aligned.m8n8.x2" TRANS ".shared.b16 {%0, %1}, [%2];"               \
                 : "=r"(out[0]), "=r"(out[1]) : "r"(row.address()) : "memory");                    \
  } else {                                                                                         \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" TRANS ".shared.b16 {%0, %1, %2, %3}, [%4];"       \
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3])                          \
                 : "r"(row.address()) : "memory");                                                 \
  }
#define PAGODA_STMATRIX(TRANS)                                                                     \
  static_assert(Count == 1 || Count == 2 || Count == 4, "stmatrix stores 1, 2 or 4 matrices");     \
  if constexpr (Count == 1) {                                                                      \
    asm volatile("stmatrix.sync.aligned.m8n8.x1" TRANS ".shared.b16 [%0], {%1};"                   \
                 ::"r"(row.address()), "r"(in[0]) : "memory");                                     \
  } else if constexpr (Count == 2) {                                                               \
    asm volatile("stmatrix.sync.aligned.m8n8.x2" TRANS ".shared.b16 [%0], {%1, %2};"               \
                 ::"r"(row.address()), "r"(in[0]), "r"(in[1]) : "memory");                         \
  } else {                                                                                         \
    asm volatile("stmatrix.sync.aligned.m8n8.x4" TRANS ".shared.b16 [%0], {%1, %2, %3, %4};"       \
                 ::"r"(row.address()), "r"(in[0]), "r"(in[1]), "r"(in[2]), "r"(in[3])              \
                 : "memory");                                                                      \
  }

// clang-format on

template <int Count>
PAGODA_DEVICE void ldmatrix(uint32_t (&out)[Count], SharedPtr<const void> row,
                            Where = Where::current()) {
  PAGODA_LDMATRIX("")
}
template <int Count>
PAGODA_DEVICE void ldmatrix_transposed(uint32_t (&out)[Count], SharedPtr<const void> row,
                                       Where = Where::current()) {
  PAGODA_LDMATRIX(".trans")
}
template <int Count>
PAGODA_DEVICE void stmatrix(SharedPtr<void> row, const uint32_t (&in)[Count],
                            Where = Where::current()) {
  PAGODA_STMATRIX("")
}
template <int Count>
PAGODA_DEVICE void stmatrix_transposed(SharedPtr<void> row, const uint32_t (&in)[Count],
                                       Where = Where::current()) {
  PAGODA_STMATRIX(".trans")
}

#undef PAGODA_STMATRIX
#undef PAGODA_LDMATRIX

}  // namespace ptx
}  // namespace pagoda::arch
