// What the synchronising primitives do, for the executing thread. `arch/emu/*.hpp` wrap these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "emulator/machine/machine.hpp"

namespace pagoda::emulator {

void named_barrier(int id, int threads, bool waits, const char* primitive, const Where& where);

void mbarrier_init(void* barrier, uint32_t arrivals, const Where& where);
void mbarrier_invalidate(void* barrier, const Where& where);
// `arrivals` and `expected_bytes` may be 0. cta_rank -1: this CTA's barrier, scope .cta; else the barrier
// at the same place in that CTA of the cluster, reached some time later, scope .cluster.
void mbarrier_arrive(void* barrier, int cta_rank, uint32_t arrivals, uint32_t expected_bytes,
                     const char* primitive, const Where& where);
bool mbarrier_test(void* barrier, uint32_t parity, const Where& where);
void mbarrier_wait(void* barrier, uint32_t parity, Scope scope, const char* primitive,
                   const Where& where);
// Relaxed: of what the arriving thread has done, only accesses to tensor memory before a tcgen05 fence are
// told, and such a wait learns of no others.
void mbarrier_arrive_relaxed(void* barrier, int cta_rank, const char* primitive,
                             const Where& where);
void mbarrier_wait_relaxed(void* barrier, uint32_t parity, const char* primitive,
                           const Where& where);
void fence_mbarrier_init(const Where& where);
// For mutants: the live mbarrier just before `address`, or the CTA's last; nullptr: there is no other.
void* barrier_beside(Machine& machine, void* address);
void name_mbarrier(void* barrier, std::string name);

void cluster_arrive(bool releases, const Where& where);
void cluster_wait(const Where& where);
void* map_shared(void* local, int rank, const Where& where);  // the same place in CTA `rank`
void store_async(void* to, const void* value, size_t bytes, void* mine, int rank,
                 const Where& where);

void fence_proxy_async(const char* primitive, const Where& where);

// The barrier that an asynchronous copy will signal: reports one that the copy engine can't see
// yet.
MBarrierState& barrier_for_copy(void* barrier, const char* primitive, const Where& where);

}  // namespace pagoda::emulator
