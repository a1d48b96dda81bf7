// Tensor copies between global and shared memory by the copy engine (cp.async.bulk.tensor, sm_90). The
// lane with predicate != 0 issues; the instruction is predicated, there is no branch.
//
//   TensorMap                     what the engine reads: a CUtensorMap on the GPU, its specification
//                                 (tensor_map.hpp) in the emulator. A kernel parameter, __grid_constant__
//   TmaCoordinates<Rank>          int32_t value[Rank], innermost first
//   tma_prefetch_descriptor(map)
//   tma_load<Rank>(predicate, to, map, coordinates, mbarrier, Eviction = kNormal)
//   tma_load_multicast<Rank>(predicate, to, map, coordinates, mbarrier, uint16_t cta_mask, Eviction)
//                                 to the same place, with its barrier, in every CTA of the mask
//   tma_load_pair<Rank>(predicate, to, map, coordinates, mbarrier, Eviction)
//                                 .cta_group::2 (sm_100): bytes on the barrier of the pair's even CTA
//   tma_store<Rank>(predicate, map, coordinates, from)
//   tma_reduce_add<Rank>(predicate, map, coordinates, from)
//   bulk_commit_group()           closes the group of this thread's stores
//   bulk_wait_group<N>()          at most N groups still write
//   bulk_wait_group_read<N>()     at most N groups still read shared memory
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/tma.hpp"
#else
#include "arch/emu/tma.hpp"
#endif
