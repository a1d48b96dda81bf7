// Programmatic dependent launch (griddepcontrol, sm_90).
//
//   grid_dependency_wait()        waits until the grids that this one depends on have completed and
//                                 their writes are visible
//   grid_launch_dependents()      lets the grids that depend on this one start
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/grid_dependency.hpp"
#else
#include "arch/emu/grid_dependency.hpp"
#endif
