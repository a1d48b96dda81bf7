// Barriers of a CTA and of a cluster, proxy fences, and shared memory of other CTAs: instructions
// for the executing thread.
#pragma once

#include <cstddef>

#include "arch/layout/where.hpp"

namespace pagoda::emulator {

using arch::Where;

// `waits` false: the thread arrives only.
void named_barrier(int id, int threads, bool waits, const char* primitive, const Where& where);

// All threads of the CTA. AMD: s_waitcnt lgkmcnt(0), then s_barrier, each a mutation of its own.
void sync_cta(const Where& where);

void cluster_arrive(bool releases, const Where& where);
void cluster_wait(const Where& where);
void* map_shared(void* local, int rank, const Where& where);  // the same offset in CTA `rank`
// Stores `bytes` in CTA `rank`, later, and completes them at the barrier at the offset of `mine`.
void store_async(void* to, const void* value, size_t bytes, void* mine, int rank,
                 const Where& where);

void fence_proxy_async(const char* primitive, const Where& where);

}  // namespace pagoda::emulator
