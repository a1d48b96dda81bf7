// cp.async in the emulator.
#pragma once

#include "arch/emu/mbarrier.hpp"
#include "arch/emu/memory.hpp"
#include "emulator/async/copies.hpp"

namespace pagoda::arch {
inline namespace emu {

template <int Bytes>
void cp_async(SharedPtr<void> to, GlobalPtr<const void> from, int32_t valid_bytes = Bytes,
              Where where = Where::current()) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "cp.async moves 4, 8 or 16 bytes");
  emulator::cp_async(to.host(), RawGlobal::of(from), Bytes, static_cast<size_t>(valid_bytes),
                     where);
}
inline void cp_async_commit(Where where = Where::current()) { emulator::cp_async_commit(where); }
template <int N>
void cp_async_wait(Where where = Where::current()) {
  emulator::cp_async_wait(N, where);
}
inline void cp_async_mbarrier_arrive(MBarrier& barrier, Where where = Where::current()) {
  emulator::cp_async_mbarrier_arrive(barrier.data().host(), where);
}

}  // namespace emu
}  // namespace pagoda::arch
