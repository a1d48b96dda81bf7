// PTX implementation of arch/mbarrier.hpp. The predicated forms are asm, the rest is cuda::ptx.
// sm_80 has neither try_wait nor an arrival count: there a wait polls and an arrival is repeated.
//
// PTX ISA, "Parallel Synchronization and Communication Instructions": mbarrier.init, inval,
// expect_tx, arrive, test_wait, try_wait; fence.mbarrier_init; "Data Movement and Conversion
// Instructions": mapa. What is relied on: an mbarrier is 8 bytes, 8-byte aligned; arrive is a
// release and a wait that returns true an acquire, at CTA scope unless the name says cluster or
// relaxed.
#pragma once

#include <cstdint>

#include "arch/layout/where.hpp"
#include "arch/ptx/cuda_ptx.hpp"
#include "arch/ptx/memory.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

struct MBarrier {
  uint64_t state;

  PAGODA_DEVICE SharedPtr<uint64_t> data() { return SharedPtr<uint64_t>(&state); }
  PAGODA_DEVICE uint32_t address() { return data().address(); }
  // The address of the barrier at the same offset in CTA `rank` of the cluster.
  PAGODA_DEVICE uint32_t address_in(int rank) {
    uint32_t remote;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(address()), "r"(rank));
    return remote;
  }

  PAGODA_DEVICE void init(uint32_t arrivals, Where = Where::current()) {
    ::cuda::ptx::mbarrier_init(&state, arrivals);
  }
  PAGODA_DEVICE void invalidate(Where = Where::current()) {
    asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(address()) : "memory");
  }

  PAGODA_DEVICE void arrive(uint32_t count = 1, Where = Where::current()) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{ .reg .b64 s; mbarrier.arrive.release.cta.shared::cta.b64 s, [%0], %1; }" ::"r"(
                     address()),
                 "r"(count)
                 : "memory");
#else
    for (; count > 0; --count) ::cuda::ptx::mbarrier_arrive(&state);
#endif
  }
  PAGODA_DEVICE void arrive_if(int32_t predicate, Where = Where::current()) {
    asm volatile(
        "{ .reg .pred p; .reg .b64 s; setp.ne.b32 p, %1, 0; @p mbarrier.arrive.shared.b64 s, [%0]; "
        "}" ::"r"(address()),
        "r"(predicate)
        : "memory");
  }
  PAGODA_DEVICE void arrive_expect_tx(uint32_t bytes, Where = Where::current()) {
    ::cuda::ptx::mbarrier_arrive_expect_tx(::cuda::ptx::sem_release, ::cuda::ptx::scope_cta,
                                           ::cuda::ptx::space_shared, &state, bytes);
  }
  PAGODA_DEVICE void arrive_expect_tx_if(int32_t predicate, uint32_t bytes,
                                         Where = Where::current()) {
    asm volatile(
        "{ .reg .pred p; .reg .b64 s; setp.ne.b32 p, %1, 0; "
        "@p mbarrier.arrive.expect_tx.release.cta.shared::cta.b64 s, [%0], %2; }" ::"r"(address()),
        "r"(predicate), "r"(bytes)
        : "memory");
  }
  PAGODA_DEVICE void arrive_remote(int cta_rank, uint32_t count = 1, Where = Where::current()) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(
                     address_in(cta_rank)),
                 "r"(count)
                 : "memory");
  }
  PAGODA_DEVICE void arrive_expect_tx_remote(int cta_rank, uint32_t bytes,
                                             Where = Where::current()) {
    asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(
                     address_in(cta_rank)),
                 "r"(bytes)
                 : "memory");
  }
  PAGODA_DEVICE void arrive_expect_tx_remote_relaxed(int cta_rank, uint32_t bytes,
                                                     Where = Where::current()) {
    asm volatile("mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(
                     address_in(cta_rank)),
                 "r"(bytes)
                 : "memory");
  }

  PAGODA_DEVICE void arrive_remote_if(int32_t predicate, int cta_rank, Where = Where::current()) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %1, 0; "
        "@p mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0]; }" ::"r"(
            address_in(cta_rank)),
        "r"(predicate)
        : "memory");
  }
  PAGODA_DEVICE void arrive_remote_relaxed_if(int32_t predicate, int cta_rank,
                                              Where = Where::current()) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %1, 0; "
        "@p mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0]; }" ::"r"(
            address_in(cta_rank)),
        "r"(predicate)
        : "memory");
  }

  PAGODA_DEVICE bool test_wait(uint32_t parity, Where = Where::current()) {
    return ::cuda::ptx::mbarrier_test_wait_parity(&state, parity);
  }
  PAGODA_DEVICE bool try_wait(uint32_t parity, Where = Where::current()) {
#if __CUDA_ARCH__ >= 900
    return ::cuda::ptx::mbarrier_try_wait_parity(&state, parity);
#else
    return ::cuda::ptx::mbarrier_test_wait_parity(&state, parity);
#endif
  }
  PAGODA_DEVICE void wait(uint32_t parity, Where = Where::current()) {
    while (!try_wait(parity)) {
    }
  }
  PAGODA_DEVICE void wait_cluster(uint32_t parity, Where = Where::current()) {
    while (!::cuda::ptx::mbarrier_try_wait_parity(::cuda::ptx::sem_acquire,
                                                  ::cuda::ptx::scope_cluster, &state, parity)) {
    }
  }
  PAGODA_DEVICE void wait_relaxed(uint32_t parity, Where = Where::current()) {
    while (!::cuda::ptx::mbarrier_try_wait_parity(::cuda::ptx::sem_relaxed,
                                                  ::cuda::ptx::scope_cluster, &state, parity)) {
    }
  }
};
static_assert(sizeof(MBarrier) == 8);

// Before sm_90 there are no clusters and no async proxy: the CTA barrier that follows is enough.
PAGODA_DEVICE void fence_mbarrier_init(Where = Where::current()) {
#if __CUDA_ARCH__ >= 900
  ::cuda::ptx::fence_mbarrier_init(::cuda::ptx::sem_release, ::cuda::ptx::scope_cluster);
#endif
}

}  // namespace ptx
}  // namespace pagoda::arch
