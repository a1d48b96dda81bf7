// Tensor copies between global and shared memory by TMA (cp.async.bulk.tensor, sm_90). The lane
// whose `predicate` is not 0 issues; the instruction is predicated, there is no branch.
//
//   TensorMap                   a CUtensorMap on the GPU, its specification (tensor_map.hpp) in the
//                               emulator. A kernel parameter, __grid_constant__
//   TmaCoordinates<Rank>        int32_t value[Rank], innermost dimension first
//   tma_prefetch_descriptor(map)
//   tma_load<Rank>(predicate, to, map, coordinates, mbarrier, Eviction = kNormal)
//                               completes the box's bytes on the mbarrier
//   tma_load_pair<Rank>(predicate, to, map, coordinates, mbarrier, Eviction)
//                               .cta_group::2 (sm_100): completes on the barrier of the pair's even
//                               CTA, whichever CTA issues
//   tma_store<Rank>(predicate, map, coordinates, from)
//   bulk_commit_group()         closes the group of this thread's stores
//   bulk_wait_group<N>()        waits until at most N groups have writes outstanding
//   bulk_wait_group_read<N>()   waits until at most N groups still read shared memory
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_NVIDIA
#include "arch/ptx/tma.hpp"
#elif PAGODA_ON_AMD
#include "arch/hip/tma.hpp"
#else
#include "arch/emu/tma.hpp"
#endif
