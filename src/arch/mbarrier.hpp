// A barrier in shared memory that counts arrivals and bytes of asynchronous copies (mbarrier,
// sm_80; bytes sm_90). A phase completes when no arrival and no byte is pending; a wait names the
// parity of the phase that it waits for. On a fresh barrier the phase before the first, of parity
// 1, is complete.
//
//   struct MBarrier, 8 bytes, trivial
//     init(uint32_t arrivals)             by one thread; then fence_mbarrier_init and a barrier of
//                                         the CTA or cluster
//     invalidate()                        before its memory serves something else
//     arrive(uint32_t count = 1)          release.cta
//     arrive_if(int32_t predicate)        by the lane whose predicate is not 0, without a branch
//     arrive_expect_tx(uint32_t bytes)    adds pending bytes, then arrives once; release.cta
//     arrive_expect_tx_if(int32_t predicate, uint32_t bytes)
//     arrive_remote(int cta_rank, uint32_t count = 1)       the barrier at the same offset in
//     arrive_expect_tx_remote(int cta_rank, uint32_t bytes)     another CTA; release.cluster, which
//                                                               is a MEMBAR.ALL.GPU
//     arrive_remote_if(int32_t predicate, int cta_rank)     predicated, without a branch
//     arrive_expect_tx_remote_relaxed(int cta_rank, uint32_t bytes)
//                                         relaxed.cluster: orders nothing that the thread did; a
//                                         wait acquires the end of the copies all the same
//     arrive_remote_relaxed_if(int32_t predicate, int cta_rank)
//                                         relaxed.cluster: orders tensor memory alone, after
//                                         tcgen05_fence_before_thread_sync
//     bool test_wait(uint32_t parity)     never suspends
//     bool try_wait(uint32_t parity)      may suspend; false after a time limit
//     wait(uint32_t parity)               loops on try_wait; acquire.cta
//     wait_cluster(uint32_t parity)       acquire.cluster: for arrivals of other CTAs
//     wait_relaxed(uint32_t parity)       relaxed.cluster: for relaxed arrivals; tensor memory is
//                                         ordered by tcgen05_fence_after_thread_sync
//     SharedPtr<uint64_t> data()
//   fence_mbarrier_init()                 makes init visible to the cluster and the async proxy
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_NVIDIA
#include "arch/ptx/mbarrier.hpp"
#elif PAGODA_ON_AMD
#include "arch/hip/mbarrier.hpp"
#else
#include "arch/emu/mbarrier.hpp"
#endif
