// Tensor copies in the emulator. A tensor map is its specification: the emulator reads that.
#pragma once

#include "arch/emu/mbarrier.hpp"
#include "arch/emu/memory.hpp"
#include "arch/layout/tensor_map.hpp"
#include "arch/layout/types.hpp"
#include "emulator/async/copies.hpp"

namespace pagoda::arch {
inline namespace emu {

using TensorMap = TensorMapSpec;

inline void tma_prefetch_descriptor(const TensorMap&) {}

template <int Rank>
void tma_load(int32_t predicate, SharedPtr<void> to, const TensorMap& map,
              const TmaCoordinates<Rank>& coordinates, MBarrier& barrier,
              Eviction eviction = Eviction::kNormal, Where where = Where::current()) {
  if (predicate == 0) return;
  emulator::tma_load(to.host(), map, coordinates.value, Rank, barrier.data().host(),
                     {.is_pair = false, .eviction = eviction}, "tma_load", where);
}
template <int Rank>
void tma_load_pair(int32_t predicate, SharedPtr<void> to, const TensorMap& map,
                   const TmaCoordinates<Rank>& coordinates, MBarrier& barrier,
                   Eviction eviction = Eviction::kNormal, Where where = Where::current()) {
  if (predicate == 0) return;
  emulator::tma_load(to.host(), map, coordinates.value, Rank, barrier.data().host(),
                     {.is_pair = true, .eviction = eviction}, "tma_load_pair", where);
}

template <int Rank>
void tma_store(int32_t predicate, const TensorMap& map, const TmaCoordinates<Rank>& coordinates,
               SharedPtr<const void> from, Where where = Where::current()) {
  if (predicate != 0) emulator::tma_store(map, coordinates.value, Rank, from.host(), false, where);
}

inline void bulk_commit_group(Where where = Where::current()) {
  emulator::bulk_commit_group(where);
}
template <int N>
void bulk_wait_group(Where where = Where::current()) {
  emulator::bulk_wait_group(N, false, "bulk_wait_group", where);
}
template <int N>
void bulk_wait_group_read(Where where = Where::current()) {
  emulator::bulk_wait_group(N, true, "bulk_wait_group_read", where);
}

}  // namespace emu
}  // namespace pagoda::arch
