// PTX implementation of arch/memory.hpp: plain C++ accesses, and compiler builtins where C++ has
// none. A SharedPtr is a generic pointer that the compiler traces back to shared memory (LDS, STS).
//
// PTX ISA, "Data Movement and Conversion Instructions": ld, ld.global.nc, st; "Parallel
// Synchronization and Communication Instructions": atom, fence; "Memory Consistency Model". Plain
// accesses are weak: only barriers, fences and the forms with an order make them visible to other
// threads. load_read_only is for memory that nothing writes during the launch.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "arch/global_ptr.hpp"
#include "arch/layout/types.hpp"
#include "arch/layout/where.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

// A generic pointer into shared memory of the executing CTA, or of any CTA of its cluster (mapa).
enum class Window : uint8_t { kCta, kCluster };

template <class T, Window window>
class WindowPtr {
 public:
  WindowPtr() = default;
  explicit PAGODA_DEVICE WindowPtr(T* pointer) : pointer_(pointer) {}
  template <class U>
  requires(std::convertible_to<U*, T*> && !std::same_as<U, T>) PAGODA_DEVICE
      WindowPtr(WindowPtr<U, window> other)
      : pointer_(other.generic()) {}

  PAGODA_DEVICE WindowPtr operator+(int32_t elements) const {
    return WindowPtr(pointer_ + elements);
  }
  template <class U>
  PAGODA_DEVICE WindowPtr<U, window> as() const {
    return WindowPtr<U, window>(reinterpret_cast<U*>(pointer_));
  }
  PAGODA_DEVICE uint32_t address() const {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer_));
  }
  PAGODA_DEVICE T* generic() const { return pointer_; }  // for this folder only

 private:
  T* pointer_;
};

template <class T>
using SharedPtr = WindowPtr<T, Window::kCta>;
template <class T>
using RemotePtr = WindowPtr<T, Window::kCluster>;

// The plain pointer of any of the three, for this folder only.
template <class T, Window window>
PAGODA_DEVICE T* raw(WindowPtr<T, window> pointer) {
  return pointer.generic();
}
template <class T>
PAGODA_DEVICE T* raw(GlobalPtr<T> pointer) {
  return RawGlobal::of(pointer);
}

template <class Pointer>
using PointeeOf = std::remove_pointer_t<decltype(raw(std::declval<Pointer>()))>;

template <class T, int N, int Align = 16>
struct SharedArray {
  PAGODA_DEVICE SharedPtr<T> data() { return SharedPtr<T>(storage_); }
  PAGODA_DEVICE SharedPtr<T> at(int32_t index) { return SharedPtr<T>(storage_ + index); }
  static constexpr int32_t size() { return N; }
  static constexpr uint32_t bytes() { return N * sizeof(T); }

 private:
  alignas(Align) T storage_[N];
};

template <class S>
PAGODA_DEVICE S& shared_storage(Where = Where::current()) {
  static_assert(std::is_trivial_v<S>, "nothing constructs shared memory");
  static_assert(alignof(S) <= 1024, "dynamic shared memory is aligned to 1024 bytes");
  extern __shared__ __align__(1024) unsigned char pagoda_dynamic_shared[];
  return *reinterpret_cast<S*>(pagoda_dynamic_shared);
}

// --- plain accesses ---------------------------------------------------------------------------

template <class T>
inline constexpr bool is_access_size = sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 ||
                                       sizeof(T) == 8 || sizeof(T) == 16;

template <class Pointer>
PAGODA_DEVICE std::remove_const_t<PointeeOf<Pointer>> load(Pointer from, Where = Where::current()) {
  static_assert(is_access_size<PointeeOf<Pointer>>, "an access moves 1, 2, 4, 8 or 16 bytes");
  return *raw(from);
}
template <class Pointer>
PAGODA_DEVICE void store(Pointer to, std::type_identity_t<PointeeOf<Pointer>> value,
                         Where = Where::current()) {
  static_assert(is_access_size<PointeeOf<Pointer>>, "an access moves 1, 2, 4, 8 or 16 bytes");
  *raw(to) = value;
}

template <class T>
PAGODA_DEVICE void prefetch_l1(GlobalPtr<T> pointer, Where = Where::current()) {
  asm volatile("prefetch.global.L1 [%0];" ::"l"(__cvta_generic_to_global(RawGlobal::of(pointer))));
}

template <class T>
PAGODA_DEVICE std::remove_const_t<T> load_read_only(GlobalPtr<T> pointer,
                                                    Where = Where::current()) {
  static_assert(is_access_size<T>, "an access moves 1, 2, 4, 8 or 16 bytes");
  const T* const from = RawGlobal::of(pointer);
  std::remove_const_t<T> value;
  if constexpr (sizeof(T) == 16) {
    reinterpret_cast<uint4&>(value) = __ldg(reinterpret_cast<const uint4*>(from));
  } else if constexpr (sizeof(T) == 8) {
    reinterpret_cast<uint2&>(value) = __ldg(reinterpret_cast<const uint2*>(from));
  } else if constexpr (sizeof(T) == 4) {
    reinterpret_cast<unsigned&>(value) = __ldg(reinterpret_cast<const unsigned*>(from));
  } else if constexpr (sizeof(T) == 2) {
    reinterpret_cast<unsigned short&>(value) = __ldg(reinterpret_cast<const unsigned short*>(from));
  } else {
    reinterpret_cast<unsigned char&>(value) = __ldg(reinterpret_cast<const unsigned char*>(from));
  }
  return value;
}

// --- scopes -----------------------------------------------------------------------------------

// The builtins want integer literals: nvcc accepts constexpr functions there, and rejects
// variables.
PAGODA_HOST_DEVICE constexpr int nv(Scope scope) {
  switch (scope) {
    case Scope::kCta: return __NV_THREAD_SCOPE_BLOCK;
    case Scope::kCluster: return __NV_THREAD_SCOPE_CLUSTER;
    case Scope::kGpu: return __NV_THREAD_SCOPE_DEVICE;
    default: return __NV_THREAD_SCOPE_SYSTEM;
  }
}
PAGODA_HOST_DEVICE constexpr int nv(Order order) {
  switch (order) {
    case Order::kRelaxed: return __NV_ATOMIC_RELAXED;
    case Order::kAcquire: return __NV_ATOMIC_ACQUIRE;
    case Order::kRelease: return __NV_ATOMIC_RELEASE;
    default: return __NV_ATOMIC_ACQ_REL;
  }
}

// Generic addressing: the SharedPtr forms use the same builtins.
template <Scope scope = Scope::kGpu, class T>
PAGODA_DEVICE std::remove_const_t<T> load_acquire(GlobalPtr<T> from, Where = Where::current()) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "an acquiring load moves 4 or 8 bytes");
  return __nv_atomic_load_n(const_cast<std::remove_const_t<T>*>(RawGlobal::of(from)),
                            __NV_ATOMIC_ACQUIRE, nv(scope));
}
template <Scope scope = Scope::kCta, class T>
PAGODA_DEVICE std::remove_const_t<T> load_acquire(SharedPtr<T> from, Where = Where::current()) {
  return load_acquire<scope>(GlobalPtr<T>(from.generic()));
}
template <Scope scope = Scope::kGpu, class T>
PAGODA_DEVICE void store_release(GlobalPtr<T> to, std::type_identity_t<T> value,
                                 Where = Where::current()) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a releasing store moves 4 or 8 bytes");
  __nv_atomic_store_n(RawGlobal::of(to), value, __NV_ATOMIC_RELEASE, nv(scope));
}
template <Scope scope = Scope::kCta, class T>
PAGODA_DEVICE void store_release(SharedPtr<T> to, std::type_identity_t<T> value,
                                 Where = Where::current()) {
  store_release<scope>(GlobalPtr<T>(to.generic()), value);
}

template <Order order = Order::kRelaxed, Scope scope = Scope::kGpu, class T>
PAGODA_DEVICE T atomic_add(GlobalPtr<T> at, std::type_identity_t<T> value,
                           Where = Where::current()) {
  static_assert(sizeof(T) == 4, "atomics work on int32_t, uint32_t and (add) float");
  return __nv_atomic_fetch_add(RawGlobal::of(at), value, nv(order), nv(scope));
}
template <Order order = Order::kRelaxed, Scope scope = Scope::kGpu, class T>
PAGODA_DEVICE T atomic_exchange(GlobalPtr<T> at, std::type_identity_t<T> value,
                                Where = Where::current()) {
  static_assert(std::is_integral_v<T> && sizeof(T) == 4, "atomics work on 32-bit integers");
  return __nv_atomic_exchange_n(RawGlobal::of(at), value, nv(order), nv(scope));
}
// Returns the value before; stores `desired` if that value equals `expected`.
template <Order order = Order::kRelaxed, Scope scope = Scope::kGpu, class T>
PAGODA_DEVICE T atomic_cas(GlobalPtr<T> at, std::type_identity_t<T> expected,
                           std::type_identity_t<T> desired, Where = Where::current()) {
  static_assert(std::is_integral_v<T> && sizeof(T) == 4, "atomics work on 32-bit integers");
  constexpr Order kOnFailure = order == Order::kAcqRel    ? Order::kAcquire
                               : order == Order::kRelease ? Order::kRelaxed
                                                          : order;
  __nv_atomic_compare_exchange_n(RawGlobal::of(at), &expected, desired, false, nv(order),
                                 nv(kOnFailure), nv(scope));
  return expected;
}

template <Order order = Order::kRelaxed, Scope scope = Scope::kCta, class T>
PAGODA_DEVICE T atomic_add(SharedPtr<T> at, std::type_identity_t<T> value,
                           Where = Where::current()) {
  return atomic_add<order, scope>(GlobalPtr<T>(at.generic()), value);
}
template <Order order = Order::kRelaxed, Scope scope = Scope::kCta, class T>
PAGODA_DEVICE T atomic_exchange(SharedPtr<T> at, std::type_identity_t<T> value,
                                Where = Where::current()) {
  return atomic_exchange<order, scope>(GlobalPtr<T>(at.generic()), value);
}
template <Order order = Order::kRelaxed, Scope scope = Scope::kCta, class T>
PAGODA_DEVICE T atomic_cas(SharedPtr<T> at, std::type_identity_t<T> expected,
                           std::type_identity_t<T> desired, Where = Where::current()) {
  return atomic_cas<order, scope>(GlobalPtr<T>(at.generic()), expected, desired);
}

template <Scope scope = Scope::kGpu>
PAGODA_DEVICE void thread_fence(Where = Where::current()) {
  if constexpr (scope == Scope::kCta) {
    asm volatile("fence.acq_rel.cta;" ::: "memory");
  } else if constexpr (scope == Scope::kCluster) {
    asm volatile("fence.acq_rel.cluster;" ::: "memory");
  } else if constexpr (scope == Scope::kGpu) {
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
  } else {
    asm volatile("fence.acq_rel.sys;" ::: "memory");
  }
}

PAGODA_DEVICE void complete_stores(Where = Where::current()) {}

}  // namespace ptx
}  // namespace pagoda::arch
