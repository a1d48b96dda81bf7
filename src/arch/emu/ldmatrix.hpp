// ldmatrix and stmatrix in the emulator. The 16 bytes of a row are an access by the lane that has
// its address.
#pragma once

#include <cstdint>

#include "arch/emu/memory.hpp"
#include "arch/layout/where.hpp"
#include "emulator/async/warp_matrix.hpp"

namespace pagoda::arch {
inline namespace emu {

template <int Count>
void ldmatrix(uint32_t (&out)[Count], SharedPtr<const void> row, Where where = Where::current()) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "ldmatrix loads 1, 2 or 4 matrices");
  emulator::load_matrices(out, Count, row.host(), false, "ldmatrix", where);
}
template <int Count>
void ldmatrix_transposed(uint32_t (&out)[Count], SharedPtr<const void> row,
                         Where where = Where::current()) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "ldmatrix loads 1, 2 or 4 matrices");
  emulator::load_matrices(out, Count, row.host(), true, "ldmatrix_transposed", where);
}
template <int Count>
void stmatrix(SharedPtr<void> row, const uint32_t (&in)[Count], Where where = Where::current()) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "stmatrix stores 1, 2 or 4 matrices");
  emulator::store_matrices(in, Count, row.host(), false, "stmatrix", where);
}
template <int Count>
void stmatrix_transposed(SharedPtr<void> row, const uint32_t (&in)[Count],
                         Where where = Where::current()) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "stmatrix stores 1, 2 or 4 matrices");
  emulator::store_matrices(in, Count, row.host(), true, "stmatrix_transposed", where);
}

}  // namespace emu
}  // namespace pagoda::arch
