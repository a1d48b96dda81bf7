// griddepcontrol in the emulator, which runs one launch at a time: earlier launches have ended. In
// a dependent launch a thread, and the operations that it issues, may access global memory only
// after its wait. (Stricter than PTX, where one thread's wait and a barrier suffice for others.)
#pragma once

#include "arch/layout/where.hpp"
#include "emulator/machine/machine.hpp"

namespace pagoda::arch {
inline namespace emu {

namespace detail {

inline void note_grid_dependency(const char* primitive) {
  emulator::Machine& machine = emulator::Machine::current();
  const emulator::Thread& thread = emulator::Machine::current_thread();
  machine.scheduler().maybe_yield();
  machine.trace().begin(thread, primitive, "wait");
  machine.trace().end(thread);
}

}  // namespace detail

inline void grid_dependency_wait(Where where = Where::current()) {
  if (emulator::Machine::current().mutations().is_dropped("grid_dependency_wait", where)) return;
  detail::note_grid_dependency("grid_dependency_wait");
  emulator::Machine::current_thread().may_touch_global = true;
}
inline void grid_launch_dependents(Where = Where::current()) {
  detail::note_grid_dependency("grid_launch_dependents");
}

}  // namespace emu
}  // namespace pagoda::arch
