// A barrier in shared memory that counts arrivals and bytes of asynchronous copies (mbarrier,
// sm_80; transaction bytes sm_90). A phase ends when no arrival and no byte is pending; waits name
// the parity of the phase that they wait for. A fresh barrier counts as if a phase of parity 1 had
// ended.
//
//   MBarrier (8 bytes, in shared memory, trivial)
//     void init(uint32_t arrivals)        by one thread; then fence_mbarrier_init and a CTA or
//     cluster barrier void invalidate() void arrive(uint32_t count = 1) release.cta void
//     arrive_if(int32_t predicate)                   the elected lane arrives, without a branch
//     void expect_tx(uint32_t bytes)                      bytes are pending from now on, no arrival
//     void arrive_expect_tx(uint32_t bytes)               both, in this order
//     void arrive_expect_tx_if(int32_t predicate, uint32_t bytes)
//     void arrive_remote(int cta_rank, uint32_t count=1)  the barrier at the same place in another
//     CTA (release.cluster) void arrive_expect_tx_remote(int cta_rank, uint32_t bytes) bool
//     test_wait(uint32_t parity)                     never suspends bool try_wait(uint32_t parity)
//     may suspend; false after a time limit void wait(uint32_t parity) try_wait until true;
//     acquire.cta void wait_cluster(uint32_t parity)                  acquire.cluster: what other
//     CTAs released SharedPtr<uint64_t> data()
//   void fence_mbarrier_init()            makes init visible to the cluster and to the async proxy
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/mbarrier.hpp"
#else
#include "arch/emu/mbarrier.hpp"
#endif
