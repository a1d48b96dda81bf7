// Thread-block clusters and distributed shared memory (sm_90).
//
//   int cluster_rank(), cluster_size()   rank of this CTA in its cluster; CTAs of the cluster
//   cluster_arrive(), cluster_wait()     barrier.cluster, by all threads of the cluster;
//                                        release, acquire
//   cluster_arrive_relaxed()             orders no memory accesses
//   cluster_sync()                       arrive and wait
//   RemotePtr<T> map_shared(SharedPtr<T>, int rank)      the same offset in CTA `rank` (mapa)
//   store_async(RemotePtr<T>, T, MBarrier& mine, int rank)
//                                        st.async: 4 or 8 bytes, completed on the barrier at the
//                                        offset of `mine` in CTA `rank`, the pointer's CTA
//
// Kernels use the barrier and the rank (pairs of CTAs); the rest serves the emulator's tests of
// distributed shared memory.
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/cluster.hpp"
#else
#include "arch/emu/cluster.hpp"
#endif
