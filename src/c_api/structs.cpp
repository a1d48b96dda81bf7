// The checks of struct sizes.
#include "c_api/structs.hpp"

#include <string>

#include "engine/check.hpp"

namespace pagoda::c_api {

using engine::complain;

Status check_struct_size(std::string_view name, size_t struct_size) {
  if (struct_size >= 8 && struct_size % 8 == 0 && struct_size <= kMostStructBytes) return {};
  return Status::invalid(std::string(name) + ".struct_size", std::to_string(struct_size),
                         "must be the sizeof of the struct, a multiple of 8 in [8, 4096]");
}

Status complain_null(std::string_view name) { return complain(name, "null", "must not be null"); }

Status check_unknown_fields(std::string_view name, const void* from, size_t known,
                            size_t struct_size) {
  const auto* bytes = static_cast<const std::byte*>(from);
  for (size_t i = known; i < struct_size; ++i) {
    if (bytes[i] == std::byte{0}) continue;
    return Status::invalid(std::string(name) + ".struct_size", std::to_string(struct_size),
                           "byte " + std::to_string(i) + " must be 0: this library knows the " +
                               "first " + std::to_string(known));
  }
  return {};
}

Status check_reserved(std::string_view name, int32_t value) {
  return value == 0 ? Status{}
                    : complain(std::string(name) + ".reserved", int64_t{value}, "must be 0");
}

Status to_bool(std::string_view name, int32_t from, bool& to) {
  to = from == 1;
  return from == 0 || from == 1 ? Status{}
                                : engine::complain(name, int64_t{from}, "must be 0 or 1");
}

}  // namespace pagoda::c_api
