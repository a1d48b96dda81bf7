// Copies of contiguous bytes by the copy engine (cp.async.bulk, sm_90). 16-byte aligned, multiple
// of 16.
//
//   void bulk_load(predicate, SharedPtr<void> dst, const void* src, uint32_t bytes, MBarrier&,
//   Eviction = kNormal) void bulk_store(predicate, void* dst, SharedPtr<const void> src, uint32_t
//   bytes)        bulk groups: tma.hpp void bulk_copy_to_cta(predicate, RemotePtr<void> dst,
//   SharedPtr<const void> src, uint32_t bytes, MBarrier& mine, int rank)
//                              completes on the barrier at the place of `mine` in CTA `rank`
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/bulk_copy.hpp"
#else
#include "arch/emu/bulk_copy.hpp"
#endif
