// Memory in the emulator: pointers are host pointers, every access is checked before it happens.
#pragma once

#include <cstring>
#include <type_traits>

#include "arch/global_ptr.hpp"
#include "arch/layout/types.hpp"
#include "arch/layout/where.hpp"
#include "emulator/machine/machine.hpp"

namespace pagoda::arch {
inline namespace emu {

template <class T>
class SharedPtr {
 public:
  SharedPtr() = default;
  explicit SharedPtr(T* host) : host_(host) {}
  // NOLINTBEGIN(google-explicit-constructor): converts as the plain pointer does
  template <class U>
  requires(std::is_convertible_v<U*, T*>) SharedPtr(SharedPtr<U> other)
      : host_(other.host()) {}  // to const, to void
  // NOLINTEND(google-explicit-constructor)

  SharedPtr operator+(int32_t elements) const requires(!std::is_void_v<T>) {
    return SharedPtr(host_ + elements);
  }
  template <class U>
  [[nodiscard]] SharedPtr<U> as() const {
    using Void = std::conditional_t<std::is_const_v<T>, const void, void>;
    return SharedPtr<U>(static_cast<U*>(static_cast<Void*>(host_)));
  }
  [[nodiscard]] uint32_t address() const {
    emulator::Cta& cta = *emulator::Machine::current_thread().cta;
    return cta.offset_of(host_) + emulator::kSharedWindowStart;
  }
  [[nodiscard]] T* host() const { return host_; }

 private:
  T* host_ = nullptr;
};

// In the shared memory of any CTA of the cluster.
template <class T>
class RemotePtr {
 public:
  explicit RemotePtr(T* host) : host_(host) {}
  RemotePtr operator+(int32_t elements) const requires(!std::is_void_v<T>) {
    return RemotePtr(host_ + elements);
  }
  // NOLINTBEGIN(google-explicit-constructor): converts as the plain pointer does
  template <class U>
  requires(std::is_convertible_v<U*, T*>) RemotePtr(RemotePtr<U> other) : host_(other.host()) {}
  // NOLINTEND(google-explicit-constructor)
  [[nodiscard]] T* host() const { return host_; }

 private:
  T* host_;
};

template <class T, int N, int Align = 16>
struct SharedArray {
  SharedPtr<T> data() { return SharedPtr<T>(storage_); }
  SharedPtr<T> at(int32_t index) { return data() + index; }
  static constexpr int32_t size() { return N; }
  static constexpr uint32_t bytes() { return N * sizeof(T); }

 private:
  alignas(Align) T storage_[N];
};

template <class Storage>
Storage& shared_storage(Where where = Where::current()) {
  static_assert(std::is_trivial_v<Storage>, "shared memory is not constructed");
  emulator::Machine& machine = emulator::Machine::current();
  if (sizeof(Storage) > machine.shape().shared_bytes) {
    machine.reporter().fail(emulator::ReportKind::kBounds, "shared_storage", where,
                            "the storage takes " + std::to_string(sizeof(Storage)) +
                                " bytes, the launch gives " +
                                std::to_string(machine.shape().shared_bytes));
  }
  return *reinterpret_cast<Storage*>(emulator::Machine::current_thread().cta->shared);
}

namespace detail {

template <class T>
constexpr void check_width() {
  static_assert(
      sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16,
      "an access moves 1, 2, 4, 8 or 16 bytes");
}

template <class T>
T read(const T* from) {
  std::remove_const_t<T> value;
  std::memcpy(static_cast<void*>(&value), from, sizeof(T));
  return value;
}

}  // namespace detail

template <class T>
std::remove_const_t<T> load(SharedPtr<T> from, Where where = Where::current()) {
  detail::check_width<T>();
  emulator::Machine::current().memory().thread_shared(from.host(), sizeof(T), false, "load", where);
  return detail::read(from.host());
}

template <class T>
std::remove_const_t<T> load(RemotePtr<T> from, Where where = Where::current()) {
  detail::check_width<T>();
  emulator::Machine::current().memory().thread_shared(from.host(), sizeof(T), false, "load", where);
  return detail::read(from.host());
}

template <class T>
std::remove_const_t<T> load(GlobalPtr<T> pointer, Where where = Where::current()) {
  detail::check_width<T>();
  T* const from = RawGlobal::of(pointer);
  emulator::Machine::current().memory().thread_global(from, sizeof(T), false, "load", where);
  return detail::read(from);
}

// Checked like a load: of memory that the launch may read, after the grid dependency.
template <class T>
void prefetch_l1(GlobalPtr<T> pointer, Where where = Where::current()) {
  detail::check_width<T>();
  emulator::Machine::current().memory().thread_global(RawGlobal::of(pointer), sizeof(T), false,
                                                      "prefetch_l1", where);
}

template <class T>
std::remove_const_t<T> load_read_only(GlobalPtr<T> pointer, Where where = Where::current()) {
  detail::check_width<T>();
  T* const from = RawGlobal::of(pointer);
  emulator::Machine& machine = emulator::Machine::current();
  const emulator::GlobalBuffer* buffer = machine.memory().find_buffer(from);
  if (buffer != nullptr && buffer->permission == emulator::Permission::kReadWrite) {
    machine.reporter().report(
        emulator::ReportKind::kProtocol, "load_read_only", where,
        "the launch may write buffer " + buffer->name + "; ld.global.nc may give old bytes");
  }
  machine.memory().thread_global(from, sizeof(T), false, "load_read_only", where);
  return detail::read(from);
}

template <class T>
void store(SharedPtr<T> to, std::type_identity_t<T> value, Where where = Where::current()) {
  detail::check_width<T>();
  emulator::Machine::current().memory().thread_shared(to.host(), sizeof(T), true, "store", where);
  std::memcpy(static_cast<void*>(to.host()), &value, sizeof(T));
}

template <class T>
void store(RemotePtr<T> to, std::type_identity_t<T> value, Where where = Where::current()) {
  detail::check_width<T>();
  emulator::Machine::current().memory().thread_shared(to.host(), sizeof(T), true, "store", where);
  std::memcpy(static_cast<void*>(to.host()), &value, sizeof(T));
}

template <class T>
void store(GlobalPtr<T> pointer, std::type_identity_t<T> value, Where where = Where::current()) {
  detail::check_width<T>();
  T* const to = RawGlobal::of(pointer);
  emulator::Machine::current().memory().thread_global(to, sizeof(T), true, "store", where);
  std::memcpy(static_cast<void*>(to), &value, sizeof(T));
}

namespace detail {

// Reading another word, or another value in it, is progress; reading the same again is not.
template <class T>
void note_polled(const void* address, const T& value) {
  emulator::Thread& thread = emulator::Machine::current_thread();
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  if (thread.polled == address && thread.polled_value == bits) return;
  thread.polled = address;
  thread.polled_value = bits;
  emulator::Machine::current().scheduler().progress();
}

template <class T>
T load_acquire(const T* from, bool is_shared, Scope scope, const Where& where) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "acquire loads move 4 or 8 bytes");
  emulator::Machine& machine = emulator::Machine::current();
  const auto mutation = machine.mutations().at(
      "load_acquire", where, emulator::Mutation::kDrop | machine.mutations().narrower(scope));
  if (mutation == emulator::Mutation::kNarrow) scope = machine.mutations().narrowed(scope);
  // A loop over this load waits for another thread: the others run first.
  machine.scheduler().poll({.what = is_shared ? "a word of shared memory to change"
                                              : "a word of global memory to change",
                            .primitive = "load_acquire",
                            .where = where});
  machine.memory().thread_atomic(from, is_shared, sizeof(T), false, scope, "load_acquire", where);
  machine.scopes().synchronise(emulator::Machine::current_thread(), from,
                               {.scope = scope,
                                .reads = true,
                                .writes = false,
                                .acquires = mutation != emulator::Mutation::kDrop,
                                .releases = false},
                               "load_acquire", where);
  const T value = read(from);
  note_polled(from, value);
  return value;
}

template <class T>
void store_release(T* to, T value, bool is_shared, Scope scope, const Where& where) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "release stores move 4 or 8 bytes");
  emulator::Machine& machine = emulator::Machine::current();
  const auto mutation = machine.mutations().at(
      "store_release", where, emulator::Mutation::kDrop | machine.mutations().narrower(scope));
  if (mutation == emulator::Mutation::kNarrow) scope = machine.mutations().narrowed(scope);
  machine.memory().thread_atomic(to, is_shared, sizeof(T), true, scope, "store_release", where);
  machine.scopes().synchronise(emulator::Machine::current_thread(), to,
                               {.scope = scope,
                                .reads = false,
                                .writes = true,
                                .acquires = false,
                                .releases = mutation != emulator::Mutation::kDrop},
                               "store_release", where);
  std::memcpy(to, &value, sizeof(T));
}

template <class T, class Change>
T atomic(T* at, bool is_shared, Order order, Scope scope, const char* primitive, const Where& where,
         Change change) {
  emulator::Machine& machine = emulator::Machine::current();
  emulator::Mutations kinds = machine.mutations().narrower(scope);
  if (order != Order::kRelaxed) kinds = kinds | emulator::Mutation::kDrop;
  if (!kinds.is_empty()) {
    const auto mutation = machine.mutations().at(primitive, where, kinds);
    // The mutant keeps the value and drops the order.
    if (mutation == emulator::Mutation::kDrop) order = Order::kRelaxed;
    if (mutation == emulator::Mutation::kNarrow) scope = machine.mutations().narrowed(scope);
  }
  machine.memory().thread_atomic(at, is_shared, sizeof(T), true, scope, primitive, where);
  machine.scopes().synchronise(emulator::Machine::current_thread(), at,
                               {.scope = scope,
                                .reads = true,
                                .writes = true,
                                .acquires = order == Order::kAcquire || order == Order::kAcqRel,
                                .releases = order == Order::kRelease || order == Order::kAcqRel},
                               primitive, where);
  const T before = read(at);
  const T after = change(before);
  std::memcpy(at, &after, sizeof(T));
  if (std::memcmp(&before, &after, sizeof(T)) != 0) {
    machine.scheduler().progress();
  } else {  // perhaps in a loop until another thread changes the word
    note_polled(at, before);
    machine.scheduler().poll({.what = is_shared ? "a word of shared memory to change"
                                                : "a word of global memory to change",
                              .primitive = primitive,
                              .where = where});
  }
  return before;
}

}  // namespace detail

template <Scope kScope = Scope::kGpu, class T>
std::remove_const_t<T> load_acquire(GlobalPtr<T> from, Where where = Where::current()) {
  return detail::load_acquire<std::remove_const_t<T>>(RawGlobal::of(from), false, kScope, where);
}
template <Scope kScope = Scope::kCta, class T>
T load_acquire(SharedPtr<T> from, Where where = Where::current()) {
  return detail::load_acquire(from.host(), true, kScope, where);
}
template <Scope kScope = Scope::kGpu, class T>
void store_release(GlobalPtr<T> to, std::type_identity_t<T> value, Where where = Where::current()) {
  detail::store_release(RawGlobal::of(to), value, false, kScope, where);
}
template <Scope kScope = Scope::kCta, class T>
void store_release(SharedPtr<T> to, std::type_identity_t<T> value, Where where = Where::current()) {
  detail::store_release(to.host(), value, true, kScope, where);
}

template <Order kOrder = Order::kRelaxed, Scope kScope = Scope::kGpu, class T>
T atomic_add(GlobalPtr<T> at, std::type_identity_t<T> value, Where where = Where::current()) {
  return detail::atomic(RawGlobal::of(at), false, kOrder, kScope, "atomic_add", where,
                        [&](T old) { return old + value; });
}
template <Order kOrder = Order::kRelaxed, Scope kScope = Scope::kCta, class T>
T atomic_add(SharedPtr<T> at, std::type_identity_t<T> value, Where where = Where::current()) {
  return detail::atomic(at.host(), true, kOrder, kScope, "atomic_add", where,
                        [&](T old) { return old + value; });
}
template <Order kOrder = Order::kRelaxed, Scope kScope = Scope::kGpu, class T>
T atomic_exchange(GlobalPtr<T> at, std::type_identity_t<T> value, Where where = Where::current()) {
  return detail::atomic(RawGlobal::of(at), false, kOrder, kScope, "atomic_exchange", where,
                        [&](T) { return value; });
}
template <Order kOrder = Order::kRelaxed, Scope kScope = Scope::kCta, class T>
T atomic_exchange(SharedPtr<T> at, std::type_identity_t<T> value, Where where = Where::current()) {
  return detail::atomic(at.host(), true, kOrder, kScope, "atomic_exchange", where,
                        [&](T) { return value; });
}
template <Order kOrder = Order::kRelaxed, Scope kScope = Scope::kGpu, class T>
T atomic_cas(GlobalPtr<T> at, std::type_identity_t<T> expected, std::type_identity_t<T> desired,
             Where where = Where::current()) {
  return detail::atomic(RawGlobal::of(at), false, kOrder, kScope, "atomic_cas", where,
                        [&](T old) { return old == expected ? desired : old; });
}
template <Order kOrder = Order::kRelaxed, Scope kScope = Scope::kCta, class T>
T atomic_cas(SharedPtr<T> at, std::type_identity_t<T> expected, std::type_identity_t<T> desired,
             Where where = Where::current()) {
  return detail::atomic(at.host(), true, kOrder, kScope, "atomic_cas", where,
                        [&](T old) { return old == expected ? desired : old; });
}

template <Scope kScope = Scope::kGpu>
void thread_fence(Where where = Where::current()) {
  emulator::Machine& machine = emulator::Machine::current();
  const auto mutation = machine.mutations().at(
      "thread_fence", where, emulator::Mutation::kDrop | machine.mutations().narrower(kScope));
  if (mutation == emulator::Mutation::kDrop) return;
  machine.scopes().thread_fence(
      emulator::Machine::current_thread(),
      mutation == emulator::Mutation::kNarrow ? machine.mutations().narrowed(kScope) : kScope,
      where);
}

inline void complete_stores() {}

}  // namespace emu
}  // namespace pagoda::arch
