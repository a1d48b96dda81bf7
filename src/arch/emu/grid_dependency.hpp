// griddepcontrol in the emulator, which runs one launch at a time: what it depends on has ended.
#pragma once

#include "arch/emu/runtime/machine.hpp"
#include "arch/where.hpp"

namespace pagoda::arch {
inline namespace emu {

namespace detail {

inline void note_grid_dependency(const char* primitive) {
  emulator::Machine& machine = emulator::Machine::current();
  const emulator::Thread& thread = emulator::Machine::current_thread();
  machine.maybe_yield();
  machine.trace_begin(thread, primitive, "wait");
  machine.trace_end(thread);
}

}  // namespace detail

inline void grid_dependency_wait(Where = Where::current()) {
  detail::note_grid_dependency("grid_dependency_wait");
}
inline void grid_launch_dependents(Where = Where::current()) {
  detail::note_grid_dependency("grid_launch_dependents");
}

}  // namespace emu
}  // namespace pagoda::arch
