// A barrier in shared memory that counts arrivals and bytes of asynchronous copies (mbarrier, sm_80;
// bytes from sm_90 on). A phase ends when no arrival and no byte is pending; a wait names the parity of
// the phase that it waits for. A fresh barrier counts as if a phase of parity 1 had ended.
//
//   struct MBarrier, 8 bytes, trivial
//     init(uint32_t arrivals)                 by one thread; then fence_mbarrier_init and a barrier of
//                                             the CTA or cluster
//     invalidate()
//     arrive(uint32_t count = 1)              release.cta
//     arrive_if(int32_t predicate)            the elected lane arrives, without a branch
//     expect_tx(uint32_t bytes)               so many more bytes are pending; no arrival
//     arrive_expect_tx(uint32_t bytes)        both
//     arrive_expect_tx_if(int32_t predicate, uint32_t bytes)
//     arrive_remote(int cta_rank, uint32_t count = 1)           the barrier at the same place in
//     arrive_expect_tx_remote(int cta_rank, uint32_t bytes)     another CTA; release.cluster
//     arrive_remote_if(int32_t predicate, int cta_rank)         the elected lane, without a branch
//     arrive_remote_relaxed_if(int32_t predicate, int cta_rank) relaxed.cluster: tells of tensor memory alone,
//                                             as far as a tcgen05 fence came before
//     bool test_wait(uint32_t parity)         never suspends
//     bool try_wait(uint32_t parity)          may suspend; false after a time limit
//     wait(uint32_t parity)                   until it is true; acquire.cta
//     wait_cluster(uint32_t parity)           acquire.cluster: sees what other CTAs released
//     wait_relaxed(uint32_t parity)           relaxed.cluster: learns what relaxed arrivals told, from a
//                                             tcgen05 fence on
//     SharedPtr<uint64_t> data()
//   fence_mbarrier_init()                     shows init to the cluster and to the copy engine
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/mbarrier.hpp"
#else
#include "arch/emu/mbarrier.hpp"
#endif
