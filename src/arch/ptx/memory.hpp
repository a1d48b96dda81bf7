// Real half of arch/memory.hpp: plain accesses where C++ has them, compiler builtins for the rest.
// A SharedPtr is a generic pointer that the compiler traces back to shared memory (LDS, STS).
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "arch/global_ptr.hpp"
#include "arch/layout/types.hpp"
#include "arch/layout/where.hpp"
#include "core/target.hpp"

namespace pagoda::arch {
inline namespace ptx {

template <class T>
class SharedPtr {
 public:
  SharedPtr() = default;
  explicit PAGODA_DEVICE SharedPtr(T* pointer) : pointer_(pointer) {}
  template <class U>
  requires(std::convertible_to<U*, T*> && !std::same_as<U, T>) PAGODA_DEVICE
      SharedPtr(SharedPtr<U> other)
      : pointer_(other.generic()) {}

  PAGODA_DEVICE SharedPtr operator+(int32_t elements) const {
    return SharedPtr(pointer_ + elements);
  }
  template <class U>
  PAGODA_DEVICE SharedPtr<U> as() const {
    return SharedPtr<U>(reinterpret_cast<U*>(pointer_));
  }
  PAGODA_DEVICE uint32_t address() const {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer_));
  }
  PAGODA_DEVICE T* generic() const { return pointer_; }  // for this folder only

 private:
  T* pointer_;
};

// A generic pointer into another CTA's window (mapa).
template <class T>
class RemotePtr {
 public:
  RemotePtr() = default;
  explicit PAGODA_DEVICE RemotePtr(T* pointer) : pointer_(pointer) {}
  template <class U>
  requires(std::convertible_to<U*, T*> && !std::same_as<U, T>) PAGODA_DEVICE
      RemotePtr(RemotePtr<U> other)
      : pointer_(other.generic()) {}

  PAGODA_DEVICE RemotePtr operator+(int32_t elements) const {
    return RemotePtr(pointer_ + elements);
  }
  template <class U>
  PAGODA_DEVICE RemotePtr<U> as() const {
    return RemotePtr<U>(reinterpret_cast<U*>(pointer_));
  }
  PAGODA_DEVICE uint32_t address() const {
    return static_cast<uint32_t>(__cvta_generic_to_shared(pointer_));
  }
  PAGODA_DEVICE T* generic() const { return pointer_; }

 private:
  T* pointer_;
};

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

template <class T>
PAGODA_DEVICE std::remove_const_t<T> load(SharedPtr<T> from, Where = Where::current()) {
  static_assert(is_access_size<T>, "an access moves 1, 2, 4, 8 or 16 bytes");
  return *from.generic();
}
template <class T>
PAGODA_DEVICE std::remove_const_t<T> load(RemotePtr<T> from, Where = Where::current()) {
  static_assert(is_access_size<T>, "an access moves 1, 2, 4, 8 or 16 bytes");
  return *from.generic();
}
template <class T>
PAGODA_DEVICE std::remove_const_t<T> load(GlobalPtr<T> from, Where = Where::current()) {
  static_assert(is_access_size<T>, "an access moves 1, 2, 4, 8 or 16 bytes");
  return *RawGlobal::of(from);
}

template <class T>
PAGODA_DEVICE void store(SharedPtr<T> to, std::type_identity_t<T> value, Where = Where::current()) {
  static_assert(is_access_size<T>, "an access moves 1, 2, 4, 8 or 16 bytes");
  *to.generic() = value;
}
template <class T>
PAGODA_DEVICE void store(RemotePtr<T> to, std::type_identity_t<T> value, Where = Where::current()) {
  static_assert(is_access_size<T>, "an access moves 1, 2, 4, 8 or 16 bytes");
  *to.generic() = value;
}
template <class T>
PAGODA_DEVICE void store(GlobalPtr<T> to, std::type_identity_t<T> value, Where = Where::current()) {
  static_assert(is_access_size<T>, "an access moves 1, 2, 4, 8 or 16 bytes");
  *RawGlobal::of(to) = value;
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

// The compiler takes functions here, and rejects variables, for "integer literals".
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

// A SharedPtr's generic address works in the same instructions.
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
PAGODA_DEVICE T atomic_max(GlobalPtr<T> at, std::type_identity_t<T> value,
                           Where = Where::current()) {
  static_assert(std::is_integral_v<T> && sizeof(T) == 4, "atomic_max works on 32-bit integers");
  return __nv_atomic_fetch_max(RawGlobal::of(at), value, nv(order), nv(scope));
}
template <Order order = Order::kRelaxed, Scope scope = Scope::kGpu, class T>
PAGODA_DEVICE T atomic_exchange(GlobalPtr<T> at, std::type_identity_t<T> value,
                                Where = Where::current()) {
  static_assert(std::is_integral_v<T> && sizeof(T) == 4, "atomics work on 32-bit integers");
  return __nv_atomic_exchange_n(RawGlobal::of(at), value, nv(order), nv(scope));
}
// Returns what was there; `desired` was stored if that equals `expected`.
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
PAGODA_DEVICE T atomic_max(SharedPtr<T> at, std::type_identity_t<T> value,
                           Where = Where::current()) {
  return atomic_max<order, scope>(GlobalPtr<T>(at.generic()), value);
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

PAGODA_DEVICE void prefetch_l2(GlobalPtr<const void> address, Where = Where::current()) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(RawGlobal::of(address))));
}

}  // namespace ptx
}  // namespace pagoda::arch
