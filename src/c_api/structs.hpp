// Structs that begin with their size, from and to callers of any version of pagoda.h.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "pagoda/pagoda.h"
#include "pagoda/status.hpp"

namespace pagoda::c_api {

// More than any version's struct: a size above it was not set. A status has 1024.
inline constexpr size_t kMostStructBytes = 4096;

// struct_size is a multiple of 8, as no field crosses such a boundary, and in [8, 4096].
[[nodiscard]] Status check_struct_size(std::string_view name, size_t struct_size);
[[nodiscard]] Status complain_null(std::string_view name);

// Whether `known` bytes of the `struct_size` bytes at `from` are all that differ from zero.
[[nodiscard]] Status check_unknown_fields(std::string_view name, const void* from, size_t known,
                                          size_t struct_size);

// Sets `to` to the struct at `from`; fields that the caller's version lacks are zero.
template <typename T>
[[nodiscard]] Status read_struct(std::string_view name, const T* from, T& to) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % 8 == 0);
  to = {};
  if (from == nullptr) return complain_null(name);
  size_t size = 0;  // `from` may be shorter than T: its first field is all that is certain
  std::memcpy(&size, from, sizeof size);
  if (Status s = check_struct_size(name, size); !s) return s;
  if (Status s = check_unknown_fields(name, from, sizeof(T), size); !s) return s;
  std::memcpy(&to, from, std::min(size, sizeof(T)));
  return {};
}

// The same for an optional struct: null = all defaults.
template <typename T>
[[nodiscard]] Status read_optional(std::string_view name, const T* from, T& to) {
  to = {};
  return from == nullptr ? Status{} : read_struct(name, from, to);
}

// Writes `values` to the struct at `to`, as far as it reaches; its struct_size stays, and fields
// that this library does not know become zero.
template <typename T>
[[nodiscard]] Status write_struct(std::string_view name, T values, T* to) {
  if (to == nullptr) return complain_null(name);
  size_t size = 0;
  std::memcpy(&size, to, sizeof size);
  if (Status s = check_struct_size(name, size); !s) return s;
  values.struct_size = size;
  std::memset(static_cast<void*>(to), 0, size);
  std::memcpy(static_cast<void*>(to), &values, std::min(size, sizeof(T)));
  return {};
}

// A field named `reserved`.
[[nodiscard]] Status check_reserved(std::string_view name, int32_t value);
// A field that is 0 or 1.
[[nodiscard]] Status to_bool(std::string_view name, int32_t from, bool& to);

}  // namespace pagoda::c_api
