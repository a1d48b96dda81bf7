// The tensor core of Blackwell and its memory (tcgen05, sm_100a). No Blackwell chip has run this
// code yet: the emulator implements the ISA's tables, and ptxas accepts the instructions.
//
//   TmemPtr {address}, lanes(n), columns(n), TmemShape, TmemCopyShape: tmem_layout.hpp
//   MmaKind, InstructionDescriptor: instruction_descriptor.hpp
//
// G is 1 or 2: the CTAs that work together (cta_group); one value in a whole kernel. Two are the
// CTAs of even and odd rank in a cluster; both allocate and free, one of them issues products,
// copies and commits, and addresses and descriptors mean the same place in each of the two.
//
//   void tmem_allocate<G>(SharedPtr<uint32_t> out, int columns)  one warp; 32, 64 .. 512 columns
//   void tmem_free<G>(TmemPtr, int columns)                      one warp; before the CTA ends
//   void tmem_relinquish<G>()                                    one warp; it allocates no more
//   struct UMma<MmaKind, G>                                      issued by one thread
//     static void ss(TmemPtr d, SmemDescriptor a, SmemDescriptor b, InstructionDescriptor,
//                    bool accumulate)                            false: D = A B
//     static void ts(TmemPtr d, TmemPtr a, SmemDescriptor b, InstructionDescriptor,
//                    bool accumulate)
//   void tmem_copy<TmemCopyShape, G>(TmemPtr, SmemDescriptor)    issued by one thread; K-major rows
//   void tcgen05_commit<G>(MBarrier&)        arrives when this thread's products and copies so far
//   void tcgen05_commit_multicast<G>(MBarrier&, uint16_t cta_mask)   are complete; in every CTA of
//                                            the mask. Implies the fence before.
//   void tmem_load<TmemShape, N, Split>(uint32_t (&out)[registers], TmemPtr)     a whole warp, its
//   void tmem_store<TmemShape, N, Split>(TmemPtr, const uint32_t (&in)[registers])   own 32 lanes
//                                            registers = tmem_registers(shape, N). Split: columns
//                                            between the halves of k16x32bx2, which alone has it.
//   void tmem_wait_load(), tmem_wait_store() a whole warp; until then its loads and stores are
//                                            under way, and `out` must not be touched
//   void tmem_wait_load(uint32_t (&out)[n], ..)    the same, where the compiler must not read `out` (one
//                                            or more) before
//   void tcgen05_fence_before_thread_sync()  before an arrival that tells others of loads, stores
//   void tcgen05_fence_after_thread_sync()   after a wait that comes before tcgen05 instructions
//
// Products and copies of one thread execute in order; nothing else is ordered without a wait.
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/tcgen05.hpp"
#else
#include "arch/emu/tcgen05.hpp"
#endif
