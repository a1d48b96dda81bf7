// The tensor core of Blackwell and its memory (tcgen05, sm_100a). No Blackwell chip has run this
// code yet: the emulator implements the ISA's tables, and ptxas accepts the instructions.
//
//   TmemPtr {uint32_t address}           lane << 16 | column; + columns(n), + lanes(n)
//   enum CtaGroup {1, 2}
//   void tmem_allocate<CtaGroup>(SharedPtr<uint32_t> out, int columns)        one warp; 32, 64,
//   128, 256, 512 void tmem_free<CtaGroup>(TmemPtr, int columns)                            one
//   warp void tmem_relinquish<CtaGroup>() struct UMma<Kind, CtaGroup>          Kind kF16, kF8F6F4,
//   kTf32, kI8; issued by one thread
//     static void ss(TmemPtr d, SmemDescriptor a, SmemDescriptor b, InstructionDescriptor, bool
//     accumulate) static void ts(TmemPtr d, TmemPtr a, SmemDescriptor b, InstructionDescriptor,
//     bool accumulate)
//   void tcgen05_commit<CtaGroup>(MBarrier&)                          arrives when this thread's
//   products and copies are complete void tcgen05_commit_multicast<CtaGroup>(MBarrier&, uint16_t
//   cta_mask) void tmem_load<Shape, Count>(uint32_t (&out)[registers], TmemPtr)         Shape
//   k32x32b, k16x64b, k16x128b, k16x256b, k16x32bx2 void tmem_store<Shape, Count>(TmemPtr, const
//   uint32_t (&in)[registers]) void tmem_wait_load(), tmem_wait_store() void tmem_copy<CopyShape,
//   CtaGroup>(TmemPtr, SmemDescriptor)              k128x256b, k128x128b, k4x256b, k64x128b...,
//   k32x128b_warpx4 void tcgen05_fence_before_thread_sync(), tcgen05_fence_after_thread_sync()
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/tcgen05.hpp"
#else
#include "arch/emu/tcgen05.hpp"
#endif
