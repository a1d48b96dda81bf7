// The functions of <cuda/ptx> that the headers of this folder call, for NVRTC, which has no headers
// of the CUDA toolkit. The same names, arguments and instructions; nvcc never sees this file.
// tests/runtime_functor compares the instructions of kernels with those that nvcc makes of
// <cuda/ptx>.
//
// PTX ISA, "Parallel Synchronization and Communication Instructions", "Data Movement and Conversion
// Instructions", "TensorCore 5th Generation Family Instructions".
#pragma once

#include <cstdint>

#include "core/target.hpp"

namespace cuda::ptx {

struct sem_release_t {};
struct sem_acquire_t {};
struct sem_relaxed_t {};
struct scope_cta_t {};
struct scope_cluster_t {};
struct space_shared_t {};
inline constexpr sem_release_t sem_release{};
inline constexpr sem_acquire_t sem_acquire{};
inline constexpr sem_relaxed_t sem_relaxed{};
inline constexpr scope_cta_t scope_cta{};
inline constexpr scope_cluster_t scope_cluster{};
inline constexpr space_shared_t space_shared{};
template <int N>
struct n32_t {};

PAGODA_DEVICE uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

// --- clusters
PAGODA_DEVICE uint32_t get_sreg_cluster_ctarank() {
  uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
PAGODA_DEVICE uint32_t get_sreg_cluster_nctarank() {
  uint32_t count;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(count));
  return count;
}
template <class T>
PAGODA_DEVICE void st_async(T* to, const T& value, uint64_t* barrier) {
  if constexpr (sizeof(T) == 4) {
    asm("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(
            shared_address(to)),
        "r"(*reinterpret_cast<const int32_t*>(&value)), "r"(shared_address(barrier))
        : "memory");
  } else {
    asm("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(
            shared_address(to)),
        "l"(*reinterpret_cast<const int64_t*>(&value)), "r"(shared_address(barrier))
        : "memory");
  }
}

// --- fences
PAGODA_DEVICE void fence_proxy_async() { asm volatile("fence.proxy.async;" ::: "memory"); }
PAGODA_DEVICE void fence_proxy_async(space_shared_t) {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
PAGODA_DEVICE void fence_mbarrier_init(sem_release_t, scope_cluster_t) {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// --- mbarriers
PAGODA_DEVICE void mbarrier_init(uint64_t* barrier, uint32_t count) {
  asm("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
}
PAGODA_DEVICE uint64_t mbarrier_arrive(uint64_t* barrier) {
  uint64_t state;
  asm("mbarrier.arrive.shared.b64 %0, [%1];"
      : "=l"(state)
      : "r"(shared_address(barrier))
      : "memory");
  return state;
}
PAGODA_DEVICE uint64_t mbarrier_arrive_expect_tx(sem_release_t, scope_cta_t, space_shared_t,
                                                 uint64_t* barrier, uint32_t bytes) {
  uint64_t state;
  asm("mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 %0, [%1], %2;"
      : "=l"(state)
      : "r"(shared_address(barrier)), "r"(bytes)
      : "memory");
  return state;
}

#define PAGODA_WAIT_PARITY(instruction)                                      \
  uint32_t is_complete;                                                      \
  asm("{ .reg .pred p; " instruction " p, [%1], %2; selp.b32 %0, 1, 0, p; }" \
      : "=r"(is_complete)                                                    \
      : "r"(shared_address(barrier)), "r"(parity)                            \
      : "memory");                                                           \
  return is_complete != 0

PAGODA_DEVICE bool mbarrier_test_wait_parity(uint64_t* barrier, uint32_t parity) {
  PAGODA_WAIT_PARITY("mbarrier.test_wait.parity.shared.b64");
}
PAGODA_DEVICE bool mbarrier_try_wait_parity(uint64_t* barrier, uint32_t parity) {
  PAGODA_WAIT_PARITY("mbarrier.try_wait.parity.shared::cta.b64");
}
PAGODA_DEVICE bool mbarrier_try_wait_parity(sem_acquire_t, scope_cluster_t, uint64_t* barrier,
                                            uint32_t parity) {
  PAGODA_WAIT_PARITY("mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64");
}
PAGODA_DEVICE bool mbarrier_try_wait_parity(sem_relaxed_t, scope_cluster_t, uint64_t* barrier,
                                            uint32_t parity) {
  PAGODA_WAIT_PARITY("mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64");
}
#undef PAGODA_WAIT_PARITY

// --- bulk copies
PAGODA_DEVICE void cp_async_bulk_commit_group() { asm volatile("cp.async.bulk.commit_group;" :::); }
template <int N>
PAGODA_DEVICE void cp_async_bulk_wait_group(n32_t<N>) {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory");
}
template <int N>
PAGODA_DEVICE void cp_async_bulk_wait_group_read(n32_t<N>) {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
}

}  // namespace cuda::ptx

#include "arch/ptx/nvrtc_tcgen05.hpp"
