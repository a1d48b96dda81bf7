// Order between dependent launches (griddepcontrol, sm_90).
//
//   grid_dependency_wait()        the launches before have completed, their writes are visible
//   grid_launch_dependents()      those that depend on this one may start
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/grid_dependency.hpp"
#else
#include "arch/emu/grid_dependency.hpp"
#endif
