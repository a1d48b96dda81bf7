// Thread-block clusters and distributed shared memory (sm_90).
//
//   int  cluster_rank(), cluster_size()       rank of this CTA in its cluster
//   void cluster_arrive(), cluster_wait()     barrier.cluster (release, acquire); every thread of
//   every CTA void cluster_arrive_relaxed()             no ordering of memory void cluster_sync()
//   arrive and wait RemotePtr<T> map_shared(SharedPtr<T>, int rank)     the same place in the
//   shared memory of CTA `rank` (mapa) void store_async(RemotePtr<T>, T, MBarrier& mine, int rank)
//   st.async: completes 4 or 8 bytes on the barrier at
//                                             the place of `mine` in CTA `rank`, where the pointer
//                                             points too
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/cluster.hpp"
#else
#include "arch/emu/cluster.hpp"
#endif
