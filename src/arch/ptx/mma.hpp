// PTX implementation of arch/mma.hpp: mma.sync with fp32 accumulators (sm_80; e4m3 sm_89).
//
// PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions": mma, and the fragments that
// layout/fragment_layout.hpp maps. Registers only: no memory ordering is relied on.
#pragma once

#include <concepts>
#include <cstdint>

#include "arch/layout/types.hpp"
#include "arch/layout/where.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

template <class T>
concept MmaHalf = std::same_as<T, BFloat16> || std::same_as<T, Half>;

// clang-format off

// A of four registers and B of two; A of two and B of one.
#define PAGODA_MMA_A4_B2(SHAPE, TYPE)                                                              \
  asm volatile("mma.sync.aligned." SHAPE ".row.col.f32." TYPE "." TYPE ".f32 "                     \
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                   \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                    \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define PAGODA_MMA_A2_B1(SHAPE, TYPE)                                                              \
  asm volatile("mma.sync.aligned." SHAPE ".row.col.f32." TYPE "." TYPE ".f32 "                     \
               "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                               \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                    \
               : "r"(a[0]), "r"(a[1]), "r"(b[0]))

// clang-format on

template <MmaHalf T>
PAGODA_DEVICE void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                                Where = Where::current()) {
  if constexpr (std::same_as<T, BFloat16>) {
    PAGODA_MMA_A4_B2("m16n8k16", "bf16");
  } else {
    PAGODA_MMA_A4_B2("m16n8k16", "f16");
  }
}

template <MmaHalf T>
PAGODA_DEVICE void mma_m16n8k8(float (&d)[4], const uint32_t (&a)[2], const uint32_t (&b)[1],
                               Where = Where::current()) {
  if constexpr (std::same_as<T, BFloat16>) {
    PAGODA_MMA_A2_B1("m16n8k8", "bf16");
  } else {
    PAGODA_MMA_A2_B1("m16n8k8", "f16");
  }
}

template <class T>
requires std::same_as<T, Float8E4M3> PAGODA_DEVICE void mma_m16n8k32(float (&d)[4],
                                                                     const uint32_t (&a)[4],
                                                                     const uint32_t (&b)[2],
                                                                     Where = Where::current()) {
  PAGODA_MMA_A4_B2("m16n8k32", "e4m3");
}

#undef PAGODA_MMA_A2_B1
#undef PAGODA_MMA_A4_B2

}  // namespace ptx
}  // namespace pagoda::arch
