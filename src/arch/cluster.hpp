// Thread-block clusters and distributed shared memory (sm_90).
//
//   int cluster_rank(), cluster_size()        rank of this CTA in its cluster
//   cluster_arrive(), cluster_wait()          barrier.cluster, every thread of every CTA; release, acquire
//   cluster_arrive_relaxed()                  orders no memory
//   cluster_sync()                            arrive and wait
//   RemotePtr<T> map_shared(SharedPtr<T>, int rank)       the same place in CTA `rank` (mapa)
//   store_async(RemotePtr<T>, T, MBarrier& mine, int rank)
//                                             st.async: 4 or 8 bytes, completed on the barrier at the
//                                             place of `mine` in CTA `rank`, where the pointer leads too
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/cluster.hpp"
#else
#include "arch/emu/cluster.hpp"
#endif
