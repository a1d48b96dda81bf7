// Bulk copies of contiguous bytes by the copy engine (cp.async.bulk, sm_90). Addresses and sizes
// are multiples of 16 bytes. The lane whose `predicate` is not 0 issues; there is no branch.
//
//   bulk_load(predicate, SharedPtr to, GlobalPtr<const void> from, uint32_t bytes, mbarrier,
//         Eviction = kNormal)      completes `bytes` on the mbarrier
//   bulk_store(predicate, GlobalPtr<void> to, SharedPtr from, uint32_t bytes)
//                                  joins the thread's bulk group: bulk_commit_group in tma.hpp
//   bulk_copy_to_cta(predicate, RemotePtr to, SharedPtr from, uint32_t bytes, MBarrier& mine,
//                    int rank)     completes on the barrier at the offset of `mine` in CTA `rank`
//
// Attention kernels use the last alone (kernels/common/kv_buffer/cluster_merge.hpp); the others
// serve the demonstrations (testing/demo) and the emulator's tests.
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/bulk_copy.hpp"
#else
#include "arch/emu/bulk_copy.hpp"
#endif
