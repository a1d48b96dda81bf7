// Copies of contiguous bytes by the copy engine (cp.async.bulk, sm_90): aligned to 16 bytes, a multiple
// of 16 long. The lane with predicate != 0 issues.
//
//   bulk_load(predicate, SharedPtr to, GlobalPtr<const void> from, uint32_t bytes, mbarrier, Eviction = kNormal)
//   bulk_store(predicate, GlobalPtr<void> to, SharedPtr from, uint32_t bytes)        groups: tma.hpp
//   bulk_copy_to_cta(predicate, RemotePtr to, SharedPtr from, uint32_t bytes, MBarrier& mine, int rank)
//                                 completes on the barrier at the place of `mine` in CTA `rank`
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/bulk_copy.hpp"
#else
#include "arch/emu/bulk_copy.hpp"
#endif
