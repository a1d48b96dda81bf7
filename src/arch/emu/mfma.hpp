// MFMA in the emulator: sums in fp32 in the order of k (emulator/async/matrix_math.hpp). The
// hardware's order within an instruction is not specified.
#pragma once

#include <cstdint>

#include "arch/emu/mma.hpp"
#include "arch/layout/where.hpp"
#include "emulator/async/warp_matrix.hpp"

namespace pagoda::arch {
inline namespace emu {

template <MmaHalf T>
void mfma_32x32x8(float (&d)[16], const uint32_t (&a)[2], const uint32_t (&b)[2],
                  Where where = Where::current()) {
  emulator::multiply_in_wave(emulator::element_type<T>(), 32, d, a, b, "mfma_32x32x8", where);
}
template <MmaHalf T>
void mfma_16x16x16(float (&d)[4], const uint32_t (&a)[2], const uint32_t (&b)[2],
                   Where where = Where::current()) {
  emulator::multiply_in_wave(emulator::element_type<T>(), 16, d, a, b, "mfma_16x16x16", where);
}

}  // namespace emu
}  // namespace pagoda::arch
