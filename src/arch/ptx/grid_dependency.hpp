// PTX implementation of arch/grid_dependency.hpp (sm_90).
//
// PTX ISA, "Parallel Synchronization and Communication Instructions": griddepcontrol. wait returns
// when the prerequisite grids have completed and their memory operations are visible to this grid.
#pragma once

#include "arch/layout/where.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

PAGODA_DEVICE void grid_dependency_wait(Where = Where::current()) {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}
PAGODA_DEVICE void grid_launch_dependents(Where = Where::current()) {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace ptx
}  // namespace pagoda::arch
