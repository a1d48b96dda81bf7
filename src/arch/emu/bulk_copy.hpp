// Bulk copies in the emulator.
#pragma once

#include "arch/emu/mbarrier.hpp"
#include "arch/emu/memory.hpp"
#include "arch/layout/types.hpp"
#include "emulator/async/copies.hpp"

namespace pagoda::arch {
inline namespace emu {

inline void bulk_load(int32_t predicate, SharedPtr<void> to, GlobalPtr<const void> from,
                      uint32_t bytes, MBarrier& barrier,
                      [[maybe_unused]] Eviction eviction = Eviction::kNormal,
                      Where where = Where::current()) {
  if (predicate != 0)
    emulator::bulk_load(to.host(), RawGlobal::of(from), bytes, barrier.data().host(), where);
}
inline void bulk_store(int32_t predicate, GlobalPtr<void> to, SharedPtr<const void> from,
                       uint32_t bytes, Where where = Where::current()) {
  if (predicate != 0) emulator::bulk_store(RawGlobal::of(to), from.host(), bytes, where);
}
inline void bulk_copy_to_cta(int32_t predicate, RemotePtr<void> to, SharedPtr<const void> from,
                             uint32_t bytes, MBarrier& mine, int rank,
                             Where where = Where::current()) {
  if (predicate != 0) {
    emulator::bulk_copy_to_cta(to.host(), from.host(), bytes, mine.data().host(), rank, where);
  }
}

}  // namespace emu
}  // namespace pagoda::arch
