// Indices of thread, warp, CTA and grid.
//
//   int  thread_idx()      in the CTA, x only (kernels here use one dimension)
//   int  thread_idx_again()   the same; the compiler does not move it, so that what follows from
//                          it takes no registers before
//   int  lane_idx()        thread_idx() % 32
//   int  warp_idx()        thread_idx() / 32 by a warp shuffle, so that the compiler knows it is
//                          uniform: every lane of the warp must call it
//   int  warpgroup_idx()   thread_idx() / 128, likewise
//   Dim3 block_idx(), grid_dim()     Dim3 {x, y, z}
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_NVIDIA
#include "arch/ptx/thread.hpp"
#elif PAGODA_ON_AMD
#include "arch/hip/thread.hpp"
#else
#include "arch/emu/thread.hpp"
#endif
