// PTX implementation of arch/wgmma.hpp (sm_90a). An asm statement names every accumulator register,
// so macros build the operand list of each N from the list of the N before.
//
// PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions": wgmma.mma_async,
// wgmma.fence, wgmma.commit_group, wgmma.wait_group, "Matrix Descriptor Format". What is relied on:
// - wgmma reads shared memory in the async proxy: TMA's tiles need no fence, tiles that threads
//   wrote need fence_proxy_async_shared before.
// - wgmma.fence orders the threads' register writes before the reads of the products that follow.
// - Accumulators and A registers belong to the hardware until wait_group returns.
#pragma once

#include <concepts>
#include <cstdint>

#include "arch/layout/smem_descriptor.hpp"
#include "arch/layout/types.hpp"
#include "arch/layout/where.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

PAGODA_DEVICE void wgmma_fence(Where = Where::current()) {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
PAGODA_DEVICE void wgmma_commit_group(Where = Where::current()) {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
template <int N>
PAGODA_DEVICE void wgmma_wait_group(Where = Where::current()) {
  static_assert(N >= 0 && N <= 7, "wgmma.wait_group leaves 0 to 7 groups in flight");
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// ptxas moves a wait up before arithmetic that does not depend on it and should run under the
// products. It does not move it over a branch, here one that is never taken. The vote makes the
// branch uniform, without which the registers of the loop are not.
template <int N>
PAGODA_DEVICE void wgmma_wait_group_after(float value, Where = Where::current()) {
  static_assert(N >= 0 && N <= 7, "wgmma.wait_group leaves 0 to 7 groups in flight");
  asm volatile(
      "{\n\t"
      ".reg .pred never;\n\t"
      "setp.lt.f32 never, %1, 0f00000000;\n\t"
      "vote.sync.any.pred never, never, -1;\n\t"
      "@never trap;\n\t"
      "wgmma.wait_group.sync.aligned %0;\n\t"
      "}" ::"n"(N),
      "f"(value)
      : "memory");
}

// The same by a branch on a value that all lanes have, which needs no vote.
template <int N>
PAGODA_DEVICE void wgmma_wait_group_here(int32_t value, Where = Where::current()) {
  static_assert(N >= 0 && N <= 7, "wgmma.wait_group leaves 0 to 7 groups in flight");
  asm volatile(
      "{\n\t"
      ".reg .pred never;\n\t"
      "setp.lt.s32 never, %1, 0;\n\t"
      "@never trap;\n\t"
      "wgmma.wait_group.sync.aligned %0;\n\t"
      "}" ::"n"(N),
      "r"(value)
      : "memory");
}

// No instruction: the compiler computes every register's final value before this point and assumes
// that it changes here.
template <int Count>
PAGODA_DEVICE void wgmma_pin(float (&registers)[Count], Where = Where::current()) {
  PAGODA_UNROLL
  for (int i = 0; i < Count; ++i) asm volatile("" : "+f"(registers[i])::"memory");
}
template <int Count>
PAGODA_DEVICE void wgmma_pin(uint32_t (&registers)[Count], Where = Where::current()) {
  PAGODA_UNROLL
  for (int i = 0; i < Count; ++i) asm volatile("" : "+r"(registers[i])::"memory");
}

template <class T, int N, Major a = Major::kK, Major b = Major::kK>
struct Wgmma;

// clang-format off

// PAGODA_Dn: the names of n accumulators in the instruction's text; PAGODA_Fn: their operands.

#define PAGODA_D4 "%0, %1, %2, %3"
#define PAGODA_F4 "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
#define PAGODA_D8 PAGODA_D4 ", %4, %5, %6, %7"
#define PAGODA_F8 PAGODA_F4, "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7])
#define PAGODA_D12 PAGODA_D8 ", %8, %9, %10, %11"
#define PAGODA_F12 PAGODA_F8, "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11])
#define PAGODA_D16 PAGODA_D12 ", %12, %13, %14, %15"
#define PAGODA_F16 PAGODA_F12, "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15])
#define PAGODA_D20 PAGODA_D16 ", %16, %17, %18, %19"
#define PAGODA_F20 PAGODA_F16, "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19])
#define PAGODA_D24 PAGODA_D20 ", %20, %21, %22, %23"
#define PAGODA_F24 PAGODA_F20, "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23])
#define PAGODA_D28 PAGODA_D24 ", %24, %25, %26, %27"
#define PAGODA_F28 PAGODA_F24, "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27])
#define PAGODA_D32 PAGODA_D28 ", %28, %29, %30, %31"
#define PAGODA_F32 PAGODA_F28, "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
#define PAGODA_D36 PAGODA_D32 ", %32, %33, %34, %35"
#define PAGODA_F36 PAGODA_F32, "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35])
#define PAGODA_D40 PAGODA_D36 ", %36, %37, %38, %39"
#define PAGODA_F40 PAGODA_F36, "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39])
#define PAGODA_D44 PAGODA_D40 ", %40, %41, %42, %43"
#define PAGODA_F44 PAGODA_F40, "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43])
#define PAGODA_D48 PAGODA_D44 ", %44, %45, %46, %47"
#define PAGODA_F48 PAGODA_F44, "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47])
#define PAGODA_D52 PAGODA_D48 ", %48, %49, %50, %51"
#define PAGODA_F52 PAGODA_F48, "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51])
#define PAGODA_D56 PAGODA_D52 ", %52, %53, %54, %55"
#define PAGODA_F56 PAGODA_F52, "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55])
#define PAGODA_D60 PAGODA_D56 ", %56, %57, %58, %59"
#define PAGODA_F60 PAGODA_F56, "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59])
#define PAGODA_D64 PAGODA_D60 ", %60, %61, %62, %63"
#define PAGODA_F64 PAGODA_F60, "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
#define PAGODA_D68 PAGODA_D64 ", %64, %65, %66, %67"
#define PAGODA_F68 PAGODA_F64, "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67])
#define PAGODA_D72 PAGODA_D68 ", %68, %69, %70, %71"
#define PAGODA_F72 PAGODA_F68, "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71])
#define PAGODA_D76 PAGODA_D72 ", %72, %73, %74, %75"
#define PAGODA_F76 PAGODA_F72, "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75])
#define PAGODA_D80 PAGODA_D76 ", %76, %77, %78, %79"
#define PAGODA_F80 PAGODA_F76, "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79])
#define PAGODA_D84 PAGODA_D80 ", %80, %81, %82, %83"
#define PAGODA_F84 PAGODA_F80, "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83])
#define PAGODA_D88 PAGODA_D84 ", %84, %85, %86, %87"
#define PAGODA_F88 PAGODA_F84, "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87])
#define PAGODA_D92 PAGODA_D88 ", %88, %89, %90, %91"
#define PAGODA_F92 PAGODA_F88, "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91])
#define PAGODA_D96 PAGODA_D92 ", %92, %93, %94, %95"
#define PAGODA_F96 PAGODA_F92, "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95])
#define PAGODA_D100 PAGODA_D96 ", %96, %97, %98, %99"
#define PAGODA_F100 PAGODA_F96, "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99])
#define PAGODA_D104 PAGODA_D100 ", %100, %101, %102, %103"
#define PAGODA_F104 PAGODA_F100, "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103])
#define PAGODA_D108 PAGODA_D104 ", %104, %105, %106, %107"
#define PAGODA_F108 PAGODA_F104, "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107])
#define PAGODA_D112 PAGODA_D108 ", %108, %109, %110, %111"
#define PAGODA_F112 PAGODA_F108, "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111])
#define PAGODA_D116 PAGODA_D112 ", %112, %113, %114, %115"
#define PAGODA_F116 PAGODA_F112, "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115])
#define PAGODA_D120 PAGODA_D116 ", %116, %117, %118, %119"
#define PAGODA_F120 PAGODA_F116, "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119])
#define PAGODA_D124 PAGODA_D120 ", %120, %121, %122, %123"
#define PAGODA_F124 PAGODA_F120, "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123])
#define PAGODA_D128 PAGODA_D124 ", %124, %125, %126, %127"
#define PAGODA_F128 PAGODA_F124, "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])

// The text of one instruction. The R = N / 2 accumulators come first, then the operands: for SS a,
// b, flag (, majors of a and b); for RS a0-a3, b, flag (, major of b). `p` is the flag "accumulate"
// as a predicate; 1, 1 scale A and B by +1.
#define PAGODA_WGMMA_TEXT(N, K, TYPE, R, A, b, flag, MAJORS)                                       \
  "{ .reg .pred p; setp.ne.b32 p, %" #flag ", 0; wgmma.mma_async.sync.aligned.m64n" #N "k" #K      \
  ".f32." TYPE "." TYPE " {" PAGODA_D##R "}, " A ", %" #b ", p, 1, 1" MAJORS "; }"

#define PAGODA_WGMMA_SS(N, K, TYPE, R, i0, i1, i2, MAJORS, ...)                                    \
  asm volatile(PAGODA_WGMMA_TEXT(N, K, TYPE, R, "%" #i0, i1, i2, MAJORS)                           \
               : PAGODA_F##R                                                                       \
               : "l"(a.bits), "l"(b.bits), "r"(static_cast<int32_t>(accumulate)) __VA_ARGS__)

#define PAGODA_WGMMA_RS(N, K, TYPE, R, i0, i1, i2, i3, i4, i5, MAJORS, ...)                        \
  asm volatile(PAGODA_WGMMA_TEXT(N, K, TYPE, R, "{%" #i0 ", %" #i1 ", %" #i2 ", %" #i3 "}", i4,    \
                                 i5, MAJORS)                                                       \
               : PAGODA_F##R                                                                       \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b.bits),                          \
                 "r"(static_cast<int32_t>(accumulate)) __VA_ARGS__)

// Wgmma<T, N>; i0 .. i6 are the numbers of the operands after the accumulators.
#define PAGODA_WGMMA(N, R, i0, i1, i2, i3, i4, i5, i6)                                             \
  template <class T, Major a_major, Major b_major>                                                 \
  struct Wgmma<T, N, a_major, b_major> {                                                           \
    static_assert(sizeof(T) == 2 || (a_major == Major::kK && b_major == Major::kK),                \
                  "SM90 reads MN-major operands of 16-bit elements only");                         \
    static constexpr int kA = a_major == Major::kMN, kB = b_major == Major::kMN;                   \
    static PAGODA_DEVICE void ss(float (&d)[R], SmemDescriptor a, SmemDescriptor b,                \
                                 bool accumulate, Where = Where::current()) {                      \
      if constexpr (std::same_as<T, BFloat16>) {                                                   \
        PAGODA_WGMMA_SS(N, 16, "bf16", R, i0, i1, i2, ", %" #i3 ", %" #i4, , "n"(kA), "n"(kB));    \
      } else if constexpr (std::same_as<T, Half>) {                                                \
        PAGODA_WGMMA_SS(N, 16, "f16", R, i0, i1, i2, ", %" #i3 ", %" #i4, , "n"(kA), "n"(kB));     \
      } else {                                                                                     \
        PAGODA_WGMMA_SS(N, 32, "e4m3", R, i0, i1, i2, "");                                         \
      }                                                                                            \
    }                                                                                              \
    static PAGODA_DEVICE void rs(float (&d)[R], const uint32_t (&a)[4], SmemDescriptor b,          \
                                 bool accumulate, Where = Where::current()) {                      \
      static_assert(a_major == Major::kK, "A in registers is K-major");                            \
      if constexpr (std::same_as<T, BFloat16>) {                                                   \
        PAGODA_WGMMA_RS(N, 16, "bf16", R, i0, i1, i2, i3, i4, i5, ", %" #i6, , "n"(kB));           \
      } else if constexpr (std::same_as<T, Half>) {                                                \
        PAGODA_WGMMA_RS(N, 16, "f16", R, i0, i1, i2, i3, i4, i5, ", %" #i6, , "n"(kB));            \
      } else {                                                                                     \
        PAGODA_WGMMA_RS(N, 32, "e4m3", R, i0, i1, i2, i3, i4, i5, "");                             \
      }                                                                                            \
    }                                                                                              \
  };

PAGODA_WGMMA(8, 4, 4, 5, 6, 7, 8, 9, 10)
PAGODA_WGMMA(16, 8, 8, 9, 10, 11, 12, 13, 14)
PAGODA_WGMMA(24, 12, 12, 13, 14, 15, 16, 17, 18)
PAGODA_WGMMA(32, 16, 16, 17, 18, 19, 20, 21, 22)
PAGODA_WGMMA(40, 20, 20, 21, 22, 23, 24, 25, 26)
PAGODA_WGMMA(48, 24, 24, 25, 26, 27, 28, 29, 30)
PAGODA_WGMMA(56, 28, 28, 29, 30, 31, 32, 33, 34)
PAGODA_WGMMA(64, 32, 32, 33, 34, 35, 36, 37, 38)
PAGODA_WGMMA(72, 36, 36, 37, 38, 39, 40, 41, 42)
PAGODA_WGMMA(80, 40, 40, 41, 42, 43, 44, 45, 46)
PAGODA_WGMMA(88, 44, 44, 45, 46, 47, 48, 49, 50)
PAGODA_WGMMA(96, 48, 48, 49, 50, 51, 52, 53, 54)
PAGODA_WGMMA(104, 52, 52, 53, 54, 55, 56, 57, 58)
PAGODA_WGMMA(112, 56, 56, 57, 58, 59, 60, 61, 62)
PAGODA_WGMMA(120, 60, 60, 61, 62, 63, 64, 65, 66)
PAGODA_WGMMA(128, 64, 64, 65, 66, 67, 68, 69, 70)
PAGODA_WGMMA(136, 68, 68, 69, 70, 71, 72, 73, 74)
PAGODA_WGMMA(144, 72, 72, 73, 74, 75, 76, 77, 78)
PAGODA_WGMMA(152, 76, 76, 77, 78, 79, 80, 81, 82)
PAGODA_WGMMA(160, 80, 80, 81, 82, 83, 84, 85, 86)
PAGODA_WGMMA(168, 84, 84, 85, 86, 87, 88, 89, 90)
PAGODA_WGMMA(176, 88, 88, 89, 90, 91, 92, 93, 94)
PAGODA_WGMMA(184, 92, 92, 93, 94, 95, 96, 97, 98)
PAGODA_WGMMA(192, 96, 96, 97, 98, 99, 100, 101, 102)
PAGODA_WGMMA(200, 100, 100, 101, 102, 103, 104, 105, 106)
PAGODA_WGMMA(208, 104, 104, 105, 106, 107, 108, 109, 110)
PAGODA_WGMMA(216, 108, 108, 109, 110, 111, 112, 113, 114)
PAGODA_WGMMA(224, 112, 112, 113, 114, 115, 116, 117, 118)
PAGODA_WGMMA(232, 116, 116, 117, 118, 119, 120, 121, 122)
PAGODA_WGMMA(240, 120, 120, 121, 122, 123, 124, 125, 126)
PAGODA_WGMMA(248, 124, 124, 125, 126, 127, 128, 129, 130)
PAGODA_WGMMA(256, 128, 128, 129, 130, 131, 132, 133, 134)

#undef PAGODA_WGMMA
#undef PAGODA_WGMMA_RS
#undef PAGODA_WGMMA_SS
#undef PAGODA_WGMMA_TEXT
#undef PAGODA_D4
#undef PAGODA_F4
#undef PAGODA_D8
#undef PAGODA_F8
#undef PAGODA_D12
#undef PAGODA_F12
#undef PAGODA_D16
#undef PAGODA_F16
#undef PAGODA_D20
#undef PAGODA_F20
#undef PAGODA_D24
#undef PAGODA_F24
#undef PAGODA_D28
#undef PAGODA_F28
#undef PAGODA_D32
#undef PAGODA_F32
#undef PAGODA_D36
#undef PAGODA_F36
#undef PAGODA_D40
#undef PAGODA_F40
#undef PAGODA_D44
#undef PAGODA_F44
#undef PAGODA_D48
#undef PAGODA_F48
#undef PAGODA_D52
#undef PAGODA_F52
#undef PAGODA_D56
#undef PAGODA_F56
#undef PAGODA_D60
#undef PAGODA_F60
#undef PAGODA_D64
#undef PAGODA_F64
#undef PAGODA_D68
#undef PAGODA_F68
#undef PAGODA_D72
#undef PAGODA_F72
#undef PAGODA_D76
#undef PAGODA_F76
#undef PAGODA_D80
#undef PAGODA_F80
#undef PAGODA_D84
#undef PAGODA_F84
#undef PAGODA_D88
#undef PAGODA_F88
#undef PAGODA_D92
#undef PAGODA_F92
#undef PAGODA_D96
#undef PAGODA_F96
#undef PAGODA_D100
#undef PAGODA_F100
#undef PAGODA_D104
#undef PAGODA_F104
#undef PAGODA_D108
#undef PAGODA_F108
#undef PAGODA_D112
#undef PAGODA_F112
#undef PAGODA_D116
#undef PAGODA_F116
#undef PAGODA_D120
#undef PAGODA_F120
#undef PAGODA_D124
#undef PAGODA_F124
#undef PAGODA_D128
#undef PAGODA_F128

// clang-format on

}  // namespace ptx
}  // namespace pagoda::arch
