// Shared and global memory as kernels see it: typed pointers, loads and stores, atomics, scopes.
//
//   SharedPtr<T>              an address in the shared memory of the executing CTA; T may be const
//   or void
//     p + i                   element i; there is no operator[] or *: every access is load() or
//     store() p.template as<U>()      the same address as another type p.address() 32-bit address
//     in the shared window (what descriptors take)
//   RemotePtr<T>              an address in the shared memory of any CTA of the cluster
//   (cluster.hpp makes it) SharedArray<T, N, Align>  storage inside a Storage struct; data() is its
//   SharedPtr, at(i) an element shared_storage<S>()       the launch's dynamic shared memory as an
//   S (trivial; 1024-byte aligned)
//
//   T    load(SharedPtr<const T> | RemotePtr<const T> | const T*)      sizeof(T) in {1, 2, 4, 8,
//   16}, aligned void store(SharedPtr<T> | RemotePtr<T> | T*, T) T    load_read_only(const T*)
//   global memory that the launch does not write (ld.global.nc) T    load_acquire<Scope>(const T*)
//   T of 4 or 8 bytes; also for SharedPtr void store_release<Scope>(T*, T) T    atomic_add<Order,
//   Scope>(T*, T), atomic_max, atomic_exchange, atomic_cas(T*, expected, desired)
//                                                        T int32_t, uint32_t, (add) float; also for
//                                                        SharedPtr
//   void thread_fence<Scope>()                           fence.acq_rel.scope
//   void prefetch_l2(const void*)
//
//   Words<N>: N 32-bit words moved as one access (N = 1, 2, 4): the 16-byte vector is Words<4>.
//   Scope: kCta, kCluster, kGpu, kSystem.  Order: kRelaxed, kAcquire, kRelease, kAcqRel.
//
// PTX ISA: ld, st, atom, fence; memory consistency model.
#pragma once

#include "core/target.hpp"

#if PAGODA_ON_GPU
#include "arch/ptx/memory.hpp"
#else
#include "arch/emu/memory.hpp"
#endif
