// Indices of the executing thread in the emulator. warp_idx and warpgroup_idx are shuffles on the
// GPU: here, too, all lanes of the warp must execute them.
#pragma once

#include "arch/layout/types.hpp"
#include "arch/layout/where.hpp"
#include "emulator/machine/machine.hpp"

namespace pagoda::arch {
inline namespace emu {

inline int thread_idx() { return emulator::Machine::current_thread().index; }
inline int thread_idx_again() { return thread_idx(); }
inline int lane_idx() { return emulator::Machine::current_thread().lane(); }
namespace detail {
inline void converge_warp(const char* primitive, const Where& where) {
  emulator::Machine::current().collectives().warp(emulator::kAllLanes, primitive, where, nullptr,
                                                  [](emulator::Collective&) {});
}
}  // namespace detail
inline int warp_idx(Where where = Where::current()) {
  detail::converge_warp("warp_idx", where);
  return emulator::Machine::current_thread().warp();
}
inline int warpgroup_idx(Where where = Where::current()) {
  detail::converge_warp("warpgroup_idx", where);
  return thread_idx() / 128;
}
inline Dim3 block_idx() { return emulator::Machine::current_thread().cta->block_idx; }
inline Dim3 grid_dim() { return emulator::Machine::current().shape().grid; }

}  // namespace emu
}  // namespace pagoda::arch
