// wgmma in the emulator. The accumulators are poison (NaN) from a wgmma until the wait for its
// group. The arrays that hold them, or A in registers, must stay in scope until then.
#pragma once

#include <cstdint>

#include "arch/emu/debug.hpp"
#include "arch/layout/smem_descriptor.hpp"
#include "arch/layout/types.hpp"
#include "arch/layout/where.hpp"
#include "emulator/async/wgmma.hpp"

namespace pagoda::arch {
inline namespace emu {

inline void wgmma_fence(Where where = Where::current()) { emulator::wgmma_fence(where); }
inline void wgmma_commit_group(Where where = Where::current()) {
  emulator::wgmma_commit_group(where);
}
template <int N>
void wgmma_wait_group(Where where = Where::current()) {
  static_assert(N >= 0 && N <= 7, "wgmma.wait_group leaves 0 to 7 groups in flight");
  emulator::wgmma_wait_group(N, where);
}
template <int N>
void wgmma_wait_group_after(float value, Where where = Where::current()) {
  expect(!(value < 0), "the value that wgmma_wait_group_after waits for is not negative", where);
  wgmma_wait_group<N>(where);
}
template <int N>
void wgmma_wait_group_here(int32_t value, Where where = Where::current()) {
  expect(value >= 0, "the value of wgmma_wait_group_here is not negative", where);
  wgmma_wait_group<N>(where);
}

// For the compiler of the real half only.
template <int Count>
void wgmma_pin(float (&)[Count], Where = Where::current()) {}
template <int Count>
void wgmma_pin(uint32_t (&)[Count], Where = Where::current()) {}

template <class T, int N, Major a_major = Major::kK, Major b_major = Major::kK>
struct Wgmma {
  static_assert(N >= 8 && N <= 256 && N % 8 == 0, "N is a multiple of 8 in 8..256");
  static_assert(sizeof(T) == 2 || (a_major == Major::kK && b_major == Major::kK),
                "SM90 reads MN-major operands of 16-bit elements only");

  static void ss(float (&d)[N / 2], SmemDescriptor a, SmemDescriptor b, bool accumulate,
                 Where where = Where::current()) {
    emulator::wgmma({emulator::element_type<T>(), N, a_major, b_major, false},
                    {d, nullptr, a, b, accumulate}, where);
  }
  static void rs(float (&d)[N / 2], const uint32_t (&a)[4], SmemDescriptor b, bool accumulate,
                 Where where = Where::current()) {
    static_assert(a_major == Major::kK, "A in registers is K-major");
    emulator::wgmma({emulator::element_type<T>(), N, a_major, b_major, true},
                    {d, a, {}, b, accumulate}, where);
  }
};

}  // namespace emu
}  // namespace pagoda::arch
