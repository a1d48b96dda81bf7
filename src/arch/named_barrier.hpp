// Barriers of a CTA (barrier.cta). `threads` is a multiple of 32 and the same in every call of one
// phase; id 0 is syncthreads, 1 .. 15 are free.
//
//   void syncthreads()
//   void named_barrier_sync(int id, int threads)       arrives and waits
//   void named_barrier_arrive(int id, int threads)     arrives only; orders the accesses before it
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_NVIDIA
#include "arch/ptx/named_barrier.hpp"
#elif PAGODA_ON_AMD
#include "arch/hip/named_barrier.hpp"
#else
#include "arch/emu/named_barrier.hpp"
#endif
