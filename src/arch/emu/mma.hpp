// mma.sync in the emulator: sums in fp32 in the order of k (emulator/async/matrix_math.hpp).
#pragma once

#include <concepts>
#include <cstdint>

#include "arch/layout/types.hpp"
#include "arch/layout/where.hpp"
#include "emulator/async/warp_matrix.hpp"

namespace pagoda::arch {
inline namespace emu {

template <class T>
concept MmaHalf = std::same_as<T, BFloat16> || std::same_as<T, Half>;

template <MmaHalf T>
void mma_m16n8k16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                  Where where = Where::current()) {
  emulator::multiply_in_warp(emulator::element_type<T>(), 16, d, a, b, "mma_m16n8k16", where);
}
template <MmaHalf T>
void mma_m16n8k8(float (&d)[4], const uint32_t (&a)[2], const uint32_t (&b)[1],
                 Where where = Where::current()) {
  emulator::multiply_in_warp(emulator::element_type<T>(), 8, d, a, b, "mma_m16n8k8", where);
}
template <class T>
requires std::same_as<T, Float8E4M3>
void mma_m16n8k32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                  Where where = Where::current()) {
  emulator::multiply_in_warp(emulator::element_type<T>(), 32, d, a, b, "mma_m16n8k32", where);
}

}  // namespace emu
}  // namespace pagoda::arch
