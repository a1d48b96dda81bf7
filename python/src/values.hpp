// Numbers, flags and texts of Python, each with the name of its argument for errors.
#pragma once

#include <concepts>
#include <cstdint>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <string>

namespace pagoda_python {

namespace nb = nanobind;

// InvalidArgument "NAME is VALUE; must be WANTED".
[[noreturn]] void raise_value(const std::string& name, nb::handle value, const char* wanted);

template <typename T>
constexpr const char* wanted_of() {
  if constexpr (std::same_as<T, bool>) return "True or False";
  if constexpr (std::same_as<T, int32_t>) return "an integer of 32 bits";
  if constexpr (std::same_as<T, int64_t>) return "an integer of 64 bits";
  if constexpr (std::same_as<T, double>) return "a number";
  if constexpr (std::same_as<T, std::string>) return "a str";
}

// `value` as a T; InvalidArgument where it is none.
template <typename T>
[[nodiscard]] T to_value(const char* name, nb::handle value) {
  T to{};
  if (!nb::try_cast(value, to)) raise_value(name, value, wanted_of<T>());
  return to;
}

}  // namespace pagoda_python
