// Shared and global memory as kernels access it: typed pointers, loads and stores, atomics, scopes.
//
//   SharedPtr<T>               address in the executing CTA's shared memory; T: const, void too
//     p + i                    element i. No operator[] or *: every access is load() or store()
//     p.template as<U>()       the same address, another type
//     p.address()              32-bit address in the shared window, for descriptors
//   RemotePtr<T>               address in the shared memory of any CTA of the cluster: cluster.hpp
//   SharedArray<T, N, Align>   storage inside a Storage struct: data(), at(i), size(), bytes()
//   shared_storage<Storage>()  the launch's dynamic shared memory; trivial, 1024-byte aligned
//   GlobalPtr<T>               address in global memory: global_ptr.hpp
//
//   load(p), store(p, value)   p: SharedPtr, RemotePtr or GlobalPtr; 1, 2, 4, 8, 16 aligned bytes
//   load_read_only(GlobalPtr)  memory that nothing writes during the launch (ld.global.nc)
//   prefetch_l1(GlobalPtr)     the line of an element, without waiting; on AMD nothing
//   load_acquire<Scope>(p), store_release<Scope>(p, value)
//                              SharedPtr or GlobalPtr; 4 or 8 bytes
//   atomic_add<Order, Scope>(p, value), atomic_exchange, atomic_cas(p, expected, desired)
//                              SharedPtr or GlobalPtr; int32_t, uint32_t, for add also float;
//                              returns the old value
//   thread_fence<Scope>()      fence.acq_rel: orders relaxed atomics before and after it
//   complete_stores()          before a barrier after which one thread of the CTA releases the
//                              stores of all to the GPU. On NVIDIA GPUs nothing: causality order is
//                              transitive
//
//   Words<N>: N = 1, 2, 4 words of 32 bits moved as one access.
//   Scope: kCta, kCluster, kGpu, kSystem. Order: kRelaxed, kAcquire, kRelease, kAcqRel.
//
// Kernels use atomic_add, load_acquire and thread_fence. The other ordered accesses are the
// vocabulary of the emulator's memory-model tests (src/emulator/findings_test.cpp).
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_NVIDIA
#include "arch/ptx/memory.hpp"
#elif PAGODA_ON_AMD
#include "arch/hip/memory.hpp"
#else
#include "arch/emu/memory.hpp"
#endif
