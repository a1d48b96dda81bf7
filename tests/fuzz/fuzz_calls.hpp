// fuzz_call: one call of the API, or of the C ABI, from the bytes of libFuzzer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <fuzzer/FuzzedDataProvider.h>
#include <random>
#include <string_view>
#include <vector>

#include "fuzz_memory.hpp"

namespace pagoda::fuzz {

using Call = void (*)(FuzzedDataProvider& data, Memory& memory);

// Makes one of the calls; attention for eight inputs in ten.
inline void fuzz_call(const uint8_t* bytes, size_t size, Call append, Call merge, Call attention) {
  // The provider takes numbers from the end: first the input's own bytes, then random ones that
  // depend on them. Without those every choice after a short input's end would be the least one.
  std::vector<uint8_t> extended(4096);
  std::minstd_rand random(static_cast<uint32_t>(
      std::hash<std::string_view>{}({reinterpret_cast<const char*>(bytes), size})));
  for (uint8_t& byte : extended) byte = static_cast<uint8_t>(random() >> 8);
  extended.insert(extended.end(), bytes, bytes + size);
  FuzzedDataProvider data(extended.data(), extended.size());
  Memory memory(data.ConsumeIntegral<uint32_t>());
  switch (data.ConsumeIntegralInRange<int>(0, 9)) {
    case 0: append(data, memory); break;
    case 1: merge(data, memory); break;
    default: attention(data, memory);
  }
}

}  // namespace pagoda::fuzz
