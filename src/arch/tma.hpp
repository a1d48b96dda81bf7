// Tensor copies between global and shared memory by the copy engine (cp.async.bulk.tensor, sm_90).
// `predicate` != 0 in the lane that issues; the instruction is predicated, there is no branch.
//
//   TensorMap                 what the engine reads: on the GPU a CUtensorMap, in the emulator the
//   specification
//                             (tensor_map.hpp); a kernel parameter (const __grid_constant__), never
//                             in registers
//   TmaCoordinates<Rank>      int32_t values[Rank], innermost first
//   void tma_prefetch_descriptor(const TensorMap&)
//   void tma_load<Rank>(predicate, SharedPtr<void> dst, const TensorMap&, TmaCoordinates<Rank>,
//   MBarrier&, Eviction = kNormal) void tma_load_multicast<Rank>(predicate, dst, map, coords,
//   MBarrier&, uint16_t cta_mask, Eviction)
//                             writes dst and signals the barrier at the same place in every CTA of
//                             the mask
//   void tma_load_pair<Rank>(predicate, dst, map, coords, MBarrier&, Eviction)
//                             .cta_group::2 (sm_100): dst in this CTA, bytes on the barrier of the
//                             even CTA of the pair
//   void tma_store<Rank>(predicate, const TensorMap&, coords, SharedPtr<const void> src)
//   void tma_reduce_add<Rank>(predicate, map, coords, src)
//   void bulk_commit_group()              closes the group of this thread's stores
//   void bulk_wait_group<N>()             at most N groups still write
//   void bulk_wait_group_read<N>()        at most N groups still read shared memory
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/tma.hpp"
#else
#include "arch/emu/tma.hpp"
#endif
