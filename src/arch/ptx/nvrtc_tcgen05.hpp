// The tcgen05 functions of nvrtc_ptx.hpp. Of the shapes of tensor memory accesses the one that
// kernels use, 32x32b, with 8 to 64 registers; the others are declared.
#pragma once

#include <cstdint>

#include "core/target.hpp"

namespace cuda::ptx {

template <int N>
struct cta_group_t {};
using cta_group_1_t = cta_group_t<1>;
using cta_group_2_t = cta_group_t<2>;
struct kind_f16_t {};
struct kind_tf32_t {};
struct kind_f8f6f4_t {};
struct kind_i8_t {};

// `statement`: asm for the CTA group `n`, of two arguments: its number as text.
#define PAGODA_BY_GROUP(n, statement) \
  if constexpr (n == 1) {             \
    statement("1");                   \
  } else {                            \
    statement("2");                   \
  }

template <int G>
PAGODA_DEVICE void tcgen05_alloc(cta_group_t<G>, uint32_t* out, uint32_t columns) {
#define PAGODA_ALLOC(group)                                                                       \
  asm volatile("tcgen05.alloc.cta_group::" group ".sync.aligned.shared::cta.b32 [%0], %1;" ::"r"( \
                   static_cast<uint32_t>(__cvta_generic_to_shared(out))),                         \
               "r"(columns)                                                                       \
               : "memory")
  PAGODA_BY_GROUP(G, PAGODA_ALLOC)
#undef PAGODA_ALLOC
}
template <int G>
PAGODA_DEVICE void tcgen05_dealloc(cta_group_t<G>, uint32_t at, uint32_t columns) {
#define PAGODA_DEALLOC(group)                                                             \
  asm volatile("tcgen05.dealloc.cta_group::" group ".sync.aligned.b32 %0, %1;" ::"r"(at), \
               "r"(columns)                                                               \
               : "memory")
  PAGODA_BY_GROUP(G, PAGODA_DEALLOC)
#undef PAGODA_DEALLOC
}
template <int G>
PAGODA_DEVICE void tcgen05_relinquish_alloc_permit(cta_group_t<G>){
#define PAGODA_RELINQUISH(group) \
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::" group ".sync.aligned;" ::: "memory")
    PAGODA_BY_GROUP(G, PAGODA_RELINQUISH)
#undef PAGODA_RELINQUISH
}

// `a`: an operand in shared memory, "l" and "%1", or in tensor memory, "r" and "[%1]".
#define PAGODA_MMA(group, kind, operand, constraint)                                           \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::" group           \
               ".kind::" kind " [%0], " operand ", %2, %3, p; }" ::"r"(d),                     \
               constraint(a), "l"(b), "r"(instruction), "r"(static_cast<uint32_t>(accumulate)) \
               : "memory")
#define PAGODA_MMA_OF_KIND(Kind, kind)                                                            \
  template <int G>                                                                                \
  PAGODA_DEVICE void tcgen05_mma(Kind, cta_group_t<G>, uint32_t d, uint64_t a, uint64_t b,        \
                                 uint32_t instruction, bool accumulate) {                         \
    if constexpr (G == 1) {                                                                       \
      PAGODA_MMA("1", kind, "%1", "l");                                                           \
    } else {                                                                                      \
      PAGODA_MMA("2", kind, "%1", "l");                                                           \
    }                                                                                             \
  }                                                                                               \
  template <int G>                                                                                \
  PAGODA_DEVICE void tcgen05_mma_tmem_a(Kind, cta_group_t<G>, uint32_t d, uint32_t a, uint64_t b, \
                                        uint32_t instruction, bool accumulate) {                  \
    if constexpr (G == 1) {                                                                       \
      PAGODA_MMA("1", kind, "[%1]", "r");                                                         \
    } else {                                                                                      \
      PAGODA_MMA("2", kind, "[%1]", "r");                                                         \
    }                                                                                             \
  }
PAGODA_MMA_OF_KIND(kind_f16_t, "f16") PAGODA_MMA_OF_KIND(kind_tf32_t, "tf32")
    PAGODA_MMA_OF_KIND(kind_f8f6f4_t, "f8f6f4") PAGODA_MMA_OF_KIND(kind_i8_t, "i8")
#undef PAGODA_MMA_OF_KIND
#undef PAGODA_MMA

        template <int G>
        PAGODA_DEVICE void tcgen05_commit(cta_group_t<G>, uint64_t* barrier) {
#define PAGODA_COMMIT(group)                                                 \
  asm volatile("tcgen05.commit.cta_group::" group                            \
               ".mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(     \
                   static_cast<uint32_t>(__cvta_generic_to_shared(barrier))) \
               : "memory")
  PAGODA_BY_GROUP(G, PAGODA_COMMIT)
#undef PAGODA_COMMIT
}
template <int G>
PAGODA_DEVICE void tcgen05_commit_multicast(cta_group_t<G>, uint64_t* barrier, uint16_t ctas) {
#define PAGODA_COMMIT(group)                                                                    \
  asm volatile("tcgen05.commit.cta_group::" group                                               \
               ".mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"( \
                   static_cast<uint32_t>(__cvta_generic_to_shared(barrier))),                   \
               "h"(ctas)                                                                        \
               : "memory")
  PAGODA_BY_GROUP(G, PAGODA_COMMIT)
#undef PAGODA_COMMIT
}
#undef PAGODA_BY_GROUP

// clang-format off
#define PAGODA_8(n, of) of(n + 0), of(n + 1), of(n + 2), of(n + 3), of(n + 4), of(n + 5), of(n + 6), of(n + 7)
#define PAGODA_16(of) PAGODA_8(0, of), PAGODA_8(8, of)
#define PAGODA_32(of) PAGODA_16(of), PAGODA_8(16, of), PAGODA_8(24, of)
#define PAGODA_64(of) PAGODA_32(of), PAGODA_8(32, of), PAGODA_8(40, of), PAGODA_8(48, of), PAGODA_8(56, of)
#define PAGODA_OUT(i) "=r"(out[i])
#define PAGODA_IN(i) "r"(in[i])
// Operands %0 to %63 of a load, %1 to %64 of a store.
#define PAGODA_LOADED_8 "%0, %1, %2, %3, %4, %5, %6, %7"
#define PAGODA_LOADED_16 PAGODA_LOADED_8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define PAGODA_LOADED_32 PAGODA_LOADED_16 ", %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define PAGODA_LOADED_64 PAGODA_LOADED_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define PAGODA_STORED_8 "%1, %2, %3, %4, %5, %6, %7, %8"
#define PAGODA_STORED_16 PAGODA_STORED_8 ", %9, %10, %11, %12, %13, %14, %15, %16"
#define PAGODA_STORED_32 PAGODA_STORED_16 ", %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32"
#define PAGODA_STORED_64 PAGODA_STORED_32 ", %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64"
// clang-format on

PAGODA_DEVICE void tcgen05_ld_32x32b(uint32_t (&out)[8], uint32_t from) {
  asm("tcgen05.ld.sync.aligned.32x32b.x8.b32 {" PAGODA_LOADED_8 "}, [%8];"
      : PAGODA_8(0, PAGODA_OUT)
      : "r"(from)
      : "memory");
}
PAGODA_DEVICE void tcgen05_ld_32x32b(uint32_t (&out)[16], uint32_t from) {
  asm("tcgen05.ld.sync.aligned.32x32b.x16.b32 {" PAGODA_LOADED_16 "}, [%16];"
      : PAGODA_16(PAGODA_OUT)
      : "r"(from)
      : "memory");
}
PAGODA_DEVICE void tcgen05_ld_32x32b(uint32_t (&out)[32], uint32_t from) {
  asm("tcgen05.ld.sync.aligned.32x32b.x32.b32 {" PAGODA_LOADED_32 "}, [%32];"
      : PAGODA_32(PAGODA_OUT)
      : "r"(from)
      : "memory");
}
PAGODA_DEVICE void tcgen05_ld_32x32b(uint32_t (&out)[64], uint32_t from) {
  asm("tcgen05.ld.sync.aligned.32x32b.x64.b32 {" PAGODA_LOADED_64 "}, [%64];"
      : PAGODA_64(PAGODA_OUT)
      : "r"(from)
      : "memory");
}
PAGODA_DEVICE void tcgen05_st_32x32b(uint32_t to, const uint32_t (&in)[8]) {
  asm("tcgen05.st.sync.aligned.32x32b.x8.b32 [%0], {" PAGODA_STORED_8 "};" ::"r"(to),
      PAGODA_8(0, PAGODA_IN)
      : "memory");
}
PAGODA_DEVICE void tcgen05_st_32x32b(uint32_t to, const uint32_t (&in)[16]) {
  asm("tcgen05.st.sync.aligned.32x32b.x16.b32 [%0], {" PAGODA_STORED_16 "};" ::"r"(to),
      PAGODA_16(PAGODA_IN)
      : "memory");
}
PAGODA_DEVICE void tcgen05_st_32x32b(uint32_t to, const uint32_t (&in)[32]) {
  asm("tcgen05.st.sync.aligned.32x32b.x32.b32 [%0], {" PAGODA_STORED_32 "};" ::"r"(to),
      PAGODA_32(PAGODA_IN)
      : "memory");
}
PAGODA_DEVICE void tcgen05_st_32x32b(uint32_t to, const uint32_t (&in)[64]) {
  asm("tcgen05.st.sync.aligned.32x32b.x64.b32 [%0], {" PAGODA_STORED_64 "};" ::"r"(to),
      PAGODA_64(PAGODA_IN)
      : "memory");
}
#undef PAGODA_8
#undef PAGODA_16
#undef PAGODA_32
#undef PAGODA_64
#undef PAGODA_OUT
#undef PAGODA_IN
#undef PAGODA_LOADED_8
#undef PAGODA_LOADED_16
#undef PAGODA_LOADED_32
#undef PAGODA_LOADED_64
#undef PAGODA_STORED_8
#undef PAGODA_STORED_16
#undef PAGODA_STORED_32
#undef PAGODA_STORED_64

template <int N>
void tcgen05_ld_16x64b(uint32_t (&out)[N], uint32_t from);
template <int N>
void tcgen05_ld_16x128b(uint32_t (&out)[N], uint32_t from);
template <int N>
void tcgen05_ld_16x256b(uint32_t (&out)[N], uint32_t from);
template <int N, int S>
void tcgen05_ld_16x32bx2(uint32_t (&out)[N], uint32_t from, n32_t<S> split);
template <int N>
void tcgen05_st_16x64b(uint32_t to, const uint32_t (&in)[N]);
template <int N>
void tcgen05_st_16x128b(uint32_t to, const uint32_t (&in)[N]);
template <int N>
void tcgen05_st_16x256b(uint32_t to, const uint32_t (&in)[N]);
template <int N, int S>
void tcgen05_st_16x32bx2(uint32_t to, n32_t<S> split, const uint32_t (&in)[N]);

PAGODA_DEVICE void tcgen05_wait_ld() {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}
PAGODA_DEVICE void tcgen05_wait_st() {
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}
PAGODA_DEVICE void tcgen05_fence_before_thread_sync() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}
PAGODA_DEVICE void tcgen05_fence_after_thread_sync() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

}  // namespace cuda::ptx
