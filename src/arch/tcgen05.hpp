// The tensor core of Blackwell and its memory (tcgen05, sm_100a). No Blackwell chip has run this
// code yet: the emulator implements the ISA's tables, and ptxas accepts the instructions.
//
//   TmemPtr {address}, lanes(n), columns(n), TmemShape: tmem_layout.hpp
//   MmaKind, InstructionDescriptor: instruction_descriptor.hpp
//
// G is the CTA group: 1, or 2 for a pair of CTAs, of even and odd rank in their cluster; one value
// in a whole kernel. Both CTAs of a pair allocate and free; one of them issues products and
// commits, and addresses and descriptors mean the same offset in each of the two.
//
//   void tmem_allocate<G>(SharedPtr<uint32_t> out, int columns)  one warp; 32, 64 .. 512 columns
//   void tmem_free<G>(TmemPtr, int columns)                      one warp; before the CTA ends
//   void tmem_relinquish<G>()                                    one warp; it allocates no more
//   struct UMma<MmaKind, G>                                      issued by one thread
//     static void ss(TmemPtr d, SmemDescriptor a, SmemDescriptor b, InstructionDescriptor,
//                    bool accumulate)                            false: D = A B
//     static void ts(TmemPtr d, TmemPtr a, SmemDescriptor b, InstructionDescriptor,
//                    bool accumulate)
//   void tcgen05_commit<G>(MBarrier&)
//       Arrives when all products that this thread issued so far are complete. Implies
//       tcgen05_fence_before_thread_sync.
//   void tcgen05_commit_multicast<G>(MBarrier&, uint16_t cta_mask)
//       The same, on the barrier of every CTA of the mask.
//   void tmem_load<TmemShape, N, Split>(uint32_t (&out)[registers], TmemPtr)
//   void tmem_store<TmemShape, N, Split>(TmemPtr, const uint32_t (&in)[registers])
//       A whole warp, its own 32 lanes. registers = tmem_registers(shape, N). Split: columns
//       between the halves of k16x32bx2, 0 for other shapes.
//   void tmem_wait_load(), tmem_wait_store()
//       A whole warp waits until its loads or stores are complete; until then nothing may touch
//       `out`.
//   void tmem_wait_load(uint32_t (&out)[n], ..)
//       The same; also keeps the compiler from reading `out` (one or two arrays) before.
//   void tcgen05_fence_before_thread_sync()
//       Orders this thread's tcgen05 loads and stores before its next arrival.
//   void tcgen05_fence_after_thread_sync()
//       Orders this thread's following tcgen05 instructions after the wait that came before.
//
// Products of one thread execute in order; nothing else is ordered without a wait.
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_NVIDIA
#include "arch/ptx/tcgen05.hpp"
#else
#include "arch/emu/tcgen05.hpp"
#endif
