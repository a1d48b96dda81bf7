// Warp-wide operations. `mask` names the lanes that call; all of them call the same operation. Only
// syncwarp orders memory.
//
//   syncwarp(mask = all)         bar.warp.sync: orders memory among the lanes
//   converge_warp()              the lanes execute what follows together, as .aligned instructions
//                                need; orders nothing
//   int32_t elect_one()          1 in one lane of the converged warp, 0 in the others (elect.sync)
//   T shuffle(T, int lane), shuffle_xor(T, int mask), shuffle_up(T, int)      T of 4 bytes
//   T shuffle_of<width>(T, int lane)     of the caller's group of `width` neighbours
//   bool any(bool), all(bool);  ballot(bool): a bit a lane, 32 or 64
//   uint32_t reduce_add(uint32_t), reduce_max(uint32_t)                       redux.sync, sm_80
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_NVIDIA
#include "arch/ptx/warp.hpp"
#elif PAGODA_ON_AMD
#include "arch/hip/warp.hpp"
#else
#include "arch/emu/warp.hpp"
#endif
