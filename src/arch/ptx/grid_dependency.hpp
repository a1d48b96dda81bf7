// Real half of arch/grid_dependency.hpp: griddepcontrol (sm_90).
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
