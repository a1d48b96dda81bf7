// AMD implementation of arch/memory.hpp: accesses through pointers of an address space, so that
// they are ds_* and global_* instructions and never flat ones, which count in both vmcnt and
// lgkmcnt. The compiler inserts the waits.
//
// LLVM, "User Guide for AMDGPU Backend": "Address Spaces", "Memory Model gfx942". Plain accesses
// are not atomic: only barriers, fences and the forms with an order make them visible to other
// threads. An access of 16 bytes is one instruction (b128, dwordx4) and aligned to 16.
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
inline namespace hip {

// LLVM's address spaces.
#define PAGODA_GLOBAL __attribute__((address_space(1)))
#define PAGODA_LDS __attribute__((address_space(3)))
#define PAGODA_CONSTANT __attribute__((address_space(4)))

// An address in the LDS of the executing workgroup.
template <class T>
class SharedPtr {
 public:
  SharedPtr() = default;
  explicit PAGODA_DEVICE SharedPtr(T* pointer) : pointer_((PAGODA_LDS T*)pointer) {}
  explicit PAGODA_DEVICE SharedPtr(PAGODA_LDS T* pointer) : pointer_(pointer) {}
  template <class U>
  requires(std::convertible_to<U*, T*> && !std::same_as<U, T>) PAGODA_DEVICE
      SharedPtr(SharedPtr<U> other)
      : pointer_(other.lds()) {}

  PAGODA_DEVICE SharedPtr operator+(int32_t elements) const {
    return SharedPtr(pointer_ + elements);
  }
  template <class U>
  PAGODA_DEVICE SharedPtr<U> as() const {
    return SharedPtr<U>((PAGODA_LDS U*)pointer_);
  }
  PAGODA_DEVICE uint32_t address() const {
    return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pointer_));
  }
  PAGODA_DEVICE PAGODA_LDS T* lds() const { return pointer_; }  // for this folder only

 private:
  PAGODA_LDS T* pointer_;
};

// The pointer with its address space, for this folder only.
template <class T>
PAGODA_DEVICE PAGODA_LDS T* raw(SharedPtr<T> pointer) {
  return pointer.lds();
}
template <class T>
PAGODA_DEVICE PAGODA_GLOBAL T* raw(GlobalPtr<T> pointer) {
  return (PAGODA_GLOBAL T*)RawGlobal::of(pointer);
}

template <class T, int N, int Align = 16>
struct SharedArray {
  PAGODA_DEVICE SharedPtr<T> data() { return SharedPtr<T>(storage_); }
  PAGODA_DEVICE SharedPtr<T> at(int32_t index) { return data() + index; }
  static constexpr int32_t size() { return N; }
  static constexpr uint32_t bytes() { return N * sizeof(T); }

 private:
  alignas(Align) T storage_[N];
};

// Static LDS: its size is part of the code object, a launch adds none.
template <class S>
PAGODA_DEVICE S& shared_storage(Where = Where::current()) {
  static_assert(std::is_trivial_v<S>, "nothing constructs shared memory");
  static_assert(alignof(S) <= 1024, "shared memory is aligned to 1024 bytes");
  static __attribute__((shared)) S storage;
  return storage;
}

// --- plain accesses ---------------------------------------------------------------------------

namespace detail {

// What one instruction moves.
template <size_t bytes>
struct AccessOf {
  static_assert(bytes == 1, "an access moves 1, 2, 4, 8 or 16 bytes");
  using Type __attribute__((may_alias)) = uint8_t;
};
template <>
struct AccessOf<2> {
  using Type __attribute__((may_alias)) = uint16_t;
};
template <>
struct AccessOf<4> {
  using Type __attribute__((may_alias)) = uint32_t;
};
template <>
struct AccessOf<8> {
  using Type __attribute__((may_alias, ext_vector_type(2))) = uint32_t;
};
template <>
struct AccessOf<16> {
  using Type __attribute__((may_alias, ext_vector_type(4))) = uint32_t;
};

template <class T>
using Access = typename AccessOf<sizeof(T)>::Type;

}  // namespace detail

template <class T>
PAGODA_DEVICE std::remove_const_t<T> load(SharedPtr<T> from, Where = Where::current()) {
  const auto bits = *(const PAGODA_LDS detail::Access<T>*)raw(from);
  return __builtin_bit_cast(std::remove_const_t<T>, bits);
}
template <class T>
PAGODA_DEVICE std::remove_const_t<T> load(GlobalPtr<T> from, Where = Where::current()) {
  const auto bits = *(const PAGODA_GLOBAL detail::Access<T>*)raw(from);
  return __builtin_bit_cast(std::remove_const_t<T>, bits);
}
template <class T>
PAGODA_DEVICE void store(SharedPtr<T> to, std::type_identity_t<T> value, Where = Where::current()) {
  *(PAGODA_LDS detail::Access<T>*)raw(to) = __builtin_bit_cast(detail::Access<T>, value);
}
template <class T>
PAGODA_DEVICE void store(GlobalPtr<T> to, std::type_identity_t<T> value, Where = Where::current()) {
  *(PAGODA_GLOBAL detail::Access<T>*)raw(to) = __builtin_bit_cast(detail::Access<T>, value);
}

template <class T>
PAGODA_DEVICE void prefetch_l1(GlobalPtr<T> /*pointer*/, Where = Where::current()) {}

// A load from the constant address space is invariant: where the address is uniform, it is a scalar
// load (s_load).
template <class T>
PAGODA_DEVICE std::remove_const_t<T> load_read_only(GlobalPtr<T> pointer,
                                                    Where = Where::current()) {
  const auto bits = *(const PAGODA_CONSTANT detail::Access<T>*)RawGlobal::of(pointer);
  return __builtin_bit_cast(std::remove_const_t<T>, bits);
}

// --- scopes -----------------------------------------------------------------------------------

constexpr PAGODA_HOST_DEVICE int amd(Scope scope) {
  switch (scope) {
    case Scope::kCta: return __HIP_MEMORY_SCOPE_WORKGROUP;
    case Scope::kCluster:  // wider: there are no clusters
    case Scope::kGpu: return __HIP_MEMORY_SCOPE_AGENT;
    default: return __HIP_MEMORY_SCOPE_SYSTEM;
  }
}
constexpr PAGODA_HOST_DEVICE int amd(Order order) {
  switch (order) {
    case Order::kRelaxed: return __ATOMIC_RELAXED;
    case Order::kAcquire: return __ATOMIC_ACQUIRE;
    case Order::kRelease: return __ATOMIC_RELEASE;
    default: return __ATOMIC_ACQ_REL;
  }
}

template <Scope scope = Scope::kGpu, class T>
PAGODA_DEVICE std::remove_const_t<T> load_acquire(GlobalPtr<T> from, Where = Where::current()) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "an acquiring load moves 4 or 8 bytes");
  return __hip_atomic_load(raw(from), __ATOMIC_ACQUIRE, amd(scope));
}
template <Scope scope = Scope::kCta, class T>
PAGODA_DEVICE std::remove_const_t<T> load_acquire(SharedPtr<T> from, Where = Where::current()) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "an acquiring load moves 4 or 8 bytes");
  return __hip_atomic_load(raw(from), __ATOMIC_ACQUIRE, amd(scope));
}
template <Scope scope = Scope::kGpu, class T>
PAGODA_DEVICE void store_release(GlobalPtr<T> to, std::type_identity_t<T> value,
                                 Where = Where::current()) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a releasing store moves 4 or 8 bytes");
  __hip_atomic_store(raw(to), value, __ATOMIC_RELEASE, amd(scope));
}
template <Scope scope = Scope::kCta, class T>
PAGODA_DEVICE void store_release(SharedPtr<T> to, std::type_identity_t<T> value,
                                 Where = Where::current()) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a releasing store moves 4 or 8 bytes");
  __hip_atomic_store(raw(to), value, __ATOMIC_RELEASE, amd(scope));
}

namespace detail {

template <Order order, Scope scope, class Pointer, class T>
PAGODA_DEVICE T atomic_add(Pointer at, T value) {
  static_assert(sizeof(T) == 4, "atomics work on int32_t, uint32_t and (add) float");
  return __hip_atomic_fetch_add(at, value, amd(order), amd(scope));
}
template <Order order, Scope scope, class Pointer, class T>
PAGODA_DEVICE T atomic_exchange(Pointer at, T value) {
  static_assert(std::is_integral_v<T> && sizeof(T) == 4, "atomics work on 32-bit integers");
  return __hip_atomic_exchange(at, value, amd(order), amd(scope));
}
template <Order order, Scope scope, class Pointer, class T>
PAGODA_DEVICE T atomic_cas(Pointer at, T expected, T desired) {
  static_assert(std::is_integral_v<T> && sizeof(T) == 4, "atomics work on 32-bit integers");
  constexpr Order kOnFailure = order == Order::kAcqRel    ? Order::kAcquire
                               : order == Order::kRelease ? Order::kRelaxed
                                                          : order;
  __hip_atomic_compare_exchange_strong(at, &expected, desired, amd(order), amd(kOnFailure),
                                       amd(scope));
  return expected;
}

}  // namespace detail

template <Order order = Order::kRelaxed, Scope scope = Scope::kGpu, class T>
PAGODA_DEVICE T atomic_add(GlobalPtr<T> at, std::type_identity_t<T> value,
                           Where = Where::current()) {
  return detail::atomic_add<order, scope>(raw(at), value);
}
template <Order order = Order::kRelaxed, Scope scope = Scope::kCta, class T>
PAGODA_DEVICE T atomic_add(SharedPtr<T> at, std::type_identity_t<T> value,
                           Where = Where::current()) {
  return detail::atomic_add<order, scope>(raw(at), value);
}
template <Order order = Order::kRelaxed, Scope scope = Scope::kGpu, class T>
PAGODA_DEVICE T atomic_exchange(GlobalPtr<T> at, std::type_identity_t<T> value,
                                Where = Where::current()) {
  return detail::atomic_exchange<order, scope>(raw(at), value);
}
template <Order order = Order::kRelaxed, Scope scope = Scope::kCta, class T>
PAGODA_DEVICE T atomic_exchange(SharedPtr<T> at, std::type_identity_t<T> value,
                                Where = Where::current()) {
  return detail::atomic_exchange<order, scope>(raw(at), value);
}
// Returns the value before; stores `desired` if that value equals `expected`.
template <Order order = Order::kRelaxed, Scope scope = Scope::kGpu, class T>
PAGODA_DEVICE T atomic_cas(GlobalPtr<T> at, std::type_identity_t<T> expected,
                           std::type_identity_t<T> desired, Where = Where::current()) {
  return detail::atomic_cas<order, scope>(raw(at), expected, desired);
}
template <Order order = Order::kRelaxed, Scope scope = Scope::kCta, class T>
PAGODA_DEVICE T atomic_cas(SharedPtr<T> at, std::type_identity_t<T> expected,
                           std::type_identity_t<T> desired, Where = Where::current()) {
  return detail::atomic_cas<order, scope>(raw(at), expected, desired);
}

// At agent scope it writes dirty lines back and invalidates: the L2 caches of the chiplets are not
// coherent with each other.
template <Scope scope = Scope::kGpu>
PAGODA_DEVICE void thread_fence(Where = Where::current()) {
  if constexpr (scope == Scope::kCta) {
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "workgroup");
  } else if constexpr (scope == Scope::kCluster || scope == Scope::kGpu) {
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "agent");
  } else {
    __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "");
  }
}

// s_waitcnt vmcnt(0). A workgroup's barrier does not wait for stores to global memory, and the
// vmcnt of the thread that releases at agent scope counts its own wavefront's alone.
PAGODA_DEVICE void complete_stores(Where = Where::current()) {
  __builtin_amdgcn_s_waitcnt(0x0f70);  // expcnt and lgkmcnt at their maxima
}

}  // namespace hip
}  // namespace pagoda::arch
