// Order between dependent launches (griddepcontrol, sm_90).
//
//   void grid_dependency_wait()       the launches that this one depends on have completed and
//   their writes are visible void grid_launch_dependents()     dependents may start
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/grid_dependency.hpp"
#else
#include "arch/emu/grid_dependency.hpp"
#endif
