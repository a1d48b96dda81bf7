// GlobalPtr<T>: an address in the GPU's global memory, as kernel parameters carry it. It has no *,
// -> or []: device code accesses memory only through load(), store(), atomics and copies of
// src/arch, so that the emulator checks every access (bounds, races, reads before
// grid_dependency_wait). Host code makes it from plain pointers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/target.hpp"

namespace pagoda::arch {

template <class T>
class GlobalPtr {
 public:
  GlobalPtr() = default;
  // NOLINTBEGIN(google-explicit-constructor): converts as the plain pointer does
  PAGODA_HOST_DEVICE constexpr GlobalPtr(std::nullptr_t) {}
  PAGODA_HOST_DEVICE constexpr GlobalPtr(T* pointer) : pointer_(pointer) {}
  template <class U>
  requires(std::is_convertible_v<U*, T*> && !std::is_same_v<U, T>) PAGODA_HOST_DEVICE
      constexpr GlobalPtr(GlobalPtr<U> other)
      : pointer_(other.pointer_) {}  // to const, to void
  // NOLINTEND(google-explicit-constructor)

  // Element i.
  template <class I>
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr GlobalPtr operator+(I i) const {
    return GlobalPtr(pointer_ + i);
  }
  template <class I>
  [[nodiscard]] PAGODA_HOST_DEVICE constexpr GlobalPtr operator-(I i) const {
    return GlobalPtr(pointer_ - i);
  }
  [[nodiscard]] friend PAGODA_HOST_DEVICE constexpr bool operator==(GlobalPtr a, GlobalPtr b) {
    return a.pointer_ == b.pointer_;
  }
  // The same address, another type. T const: U must be const.
  template <class U>
  [[nodiscard]] PAGODA_HOST_DEVICE GlobalPtr<U> as() const {
    static_assert(std::is_const_v<U> || !std::is_const_v<T>, "as() keeps const");
    if constexpr (std::is_void_v<T>) {
      return GlobalPtr<U>(static_cast<U*>(pointer_));
    } else {
      return GlobalPtr<U>(reinterpret_cast<U*>(pointer_));
    }
  }
  // As an integer: for alignment, and to pass an address through a shuffle.
  [[nodiscard]] PAGODA_HOST_DEVICE uint64_t address() const {
    return reinterpret_cast<uint64_t>(pointer_);
  }
  [[nodiscard]] static PAGODA_HOST_DEVICE GlobalPtr at_address(uint64_t address) {
    return GlobalPtr(reinterpret_cast<T*>(address));
  }

 private:
  template <class U>
  friend class GlobalPtr;
  friend struct RawGlobal;
  T* pointer_ = nullptr;
};

// The plain pointer, for src/arch and host code. tests/layering rejects any other use.
struct RawGlobal {
  template <class T>
  [[nodiscard]] static PAGODA_HOST_DEVICE constexpr T* of(GlobalPtr<T> pointer) {
    return pointer.pointer_;
  }
};

}  // namespace pagoda::arch
