// PTX implementation of arch/cluster.hpp (sm_90).
//
// PTX ISA, "Parallel Synchronization and Communication Instructions": barrier.cluster; "Data
// Movement and Conversion Instructions": mapa, st.async; "Special Registers": %cluster_ctarank,
// %cluster_nctarank. What is relied on: arrive.release and wait.acquire order all accesses of the
// cluster's threads at cluster scope; st.async is a weak write whose complete-tx on the mbarrier is
// a release at cluster scope, so the receiver waits with wait_cluster.
#pragma once

#include <cstdint>

#include "arch/layout/where.hpp"
#include "arch/ptx/cuda_ptx.hpp"
#include "arch/ptx/mbarrier.hpp"
#include "arch/ptx/memory.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

PAGODA_DEVICE int cluster_rank(Where = Where::current()) {
  return static_cast<int>(::cuda::ptx::get_sreg_cluster_ctarank());
}
PAGODA_DEVICE int cluster_size(Where = Where::current()) {
  return static_cast<int>(::cuda::ptx::get_sreg_cluster_nctarank());
}

PAGODA_DEVICE void cluster_arrive(Where = Where::current()) {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
PAGODA_DEVICE void cluster_arrive_relaxed(Where = Where::current()) {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
}
PAGODA_DEVICE void cluster_wait(Where = Where::current()) {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
PAGODA_DEVICE void cluster_sync(Where = Where::current()) {
  cluster_arrive();
  cluster_wait();
}

template <class T>
PAGODA_DEVICE RemotePtr<T> map_shared(SharedPtr<T> mine, int rank, Where = Where::current()) {
  T* remote;
  asm("mapa.u64 %0, %1, %2;" : "=l"(remote) : "l"(mine.generic()), "r"(rank));
  return RemotePtr<T>(remote);
}

template <class T>
PAGODA_DEVICE void store_async(RemotePtr<T> to, std::type_identity_t<T> value, MBarrier& mine,
                               int rank, Where = Where::current()) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "st.async moves 4 or 8 bytes");
  ::cuda::ptx::st_async(to.generic(), value, map_shared(mine.data(), rank).generic());
}

}  // namespace ptx
}  // namespace pagoda::arch
