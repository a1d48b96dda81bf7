// Barriers of a CTA in the emulator.
#pragma once

#include "arch/layout/where.hpp"
#include "emulator/machine/machine.hpp"
#include "emulator/sync/barriers.hpp"

namespace pagoda::arch {
inline namespace emu {

inline void syncthreads(Where where = Where::current()) { emulator::sync_cta(where); }
inline void named_barrier_sync(int id, int threads, Where where = Where::current()) {
  emulator::named_barrier(id, threads, true, "named_barrier_sync", where);
}
inline void named_barrier_arrive(int id, int threads, Where where = Where::current()) {
  emulator::named_barrier(id, threads, false, "named_barrier_arrive", where);
}

}  // namespace emu
}  // namespace pagoda::arch
