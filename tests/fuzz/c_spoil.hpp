// Makes calls through the C ABI invalid in the ways that only C allows, and lays their structs out
// in memory of exactly their struct_size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "c_api/c_call.hpp"
#include "fuzz_memory.hpp"

namespace pagoda::fuzz {

// Overwrites something of a valid call: a pointer, a view, a mask node, an integer.
void spoil(FuzzedDataProvider& data, test::CCall& call);
// A field of a view. Its memory is large enough for what the view then describes.
void spoil(FuzzedDataProvider& data, pagoda_tensor& tensor);

// Mostly `usual`; otherwise another version's size, or no size at all.
[[nodiscard]] size_t struct_size(FuzzedDataProvider& data, size_t usual);

// A copy of `value` in exactly `size` bytes, so that AddressSanitizer detects an access past the
// size that the struct has said. What a newer version would have added is zero, or not.
template <typename T>
T* lay_out(FuzzedDataProvider& data, Memory& memory, T value, size_t size) {
  value.struct_size = size;
  std::vector<std::byte> bytes(std::clamp<size_t>(size, 8, 4096));
  std::memcpy(bytes.data(), &value, std::min(bytes.size(), sizeof value));
  if (bytes.size() > sizeof value && data.ConsumeBool()) bytes.back() = std::byte{1};
  return reinterpret_cast<T*>(const_cast<std::byte*>(memory.keep(bytes).data()));
}

// The structs of `call`, each in memory of its own, with sizes of their own if `is_spoiled`.
[[nodiscard]] pagoda_attention* lay_out(FuzzedDataProvider& data, Memory& memory,
                                        const test::CCall& call, bool is_spoiled);

}  // namespace pagoda::fuzz
