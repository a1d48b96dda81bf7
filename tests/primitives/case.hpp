// One row of the table of primitive tests: a kernel, its inputs, the expected output bytes. The
// same rows run on the emulator and, compiled by nvcc, on a GPU. Includes the standard library
// only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pagoda::primitives {

using Bytes = std::vector<std::byte>;

// The two buffers of a launch, in the target's memory.
struct Buffers {
  const std::byte* in = nullptr;  // read only
  std::byte* out = nullptr;
  size_t in_bytes = 0, out_bytes = 0;
};

struct Case {
  std::string name;  // primitive/variant
  int min_arch = 80, max_arch = 1000;
  Bytes input{};
  Bytes output{};  // before the launch
  Bytes expected{};
  int32_t tolerance_ulp = 0;  // > 0: the output is float32, and may be off by so many ulp
  std::function<void(const Buffers&)> run{};
};

using Cases = std::vector<Case>;

// --- making inputs ----------------------------------------------------------------------------

// splitmix64: the same numbers with every standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
  }
  int32_t integer(int32_t low, int32_t high) {  // both included
    return low + static_cast<int32_t>(next() % static_cast<uint64_t>(high - low + 1));
  }

 private:
  uint64_t state_;
};

inline Bytes random_bytes(size_t count, uint64_t seed) {
  Random random(seed);
  Bytes bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next() & 0xFF);
  return bytes;
}

// The initial bytes of an output; they differ from every expected output.
inline Bytes poison(size_t count) { return Bytes(count, std::byte{0xA5}); }

template <class T>
Bytes to_bytes(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <class T>
std::vector<T> from_bytes(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// --- judging outputs --------------------------------------------------------------------------

// The offset of the first wrong byte (exact) or float (tolerance), or -1.
inline int64_t first_difference(const Case& c, std::span<const std::byte> actual) {
  const auto ordered = [](uint32_t bits) {  // neighbours in value are neighbours here
    return (bits >> 31) != 0 ? -static_cast<int64_t>(bits & 0x7FFFFFFF)
                             : static_cast<int64_t>(bits);
  };
  if (c.tolerance_ulp == 0) {
    for (size_t i = 0; i < c.expected.size(); ++i) {
      if (actual[i] != c.expected[i]) return static_cast<int64_t>(i);
    }
    return -1;
  }
  for (size_t i = 0; i + 4 <= c.expected.size(); i += 4) {
    uint32_t want = 0, have = 0;
    std::memcpy(&want, &c.expected[i], 4);
    std::memcpy(&have, &actual[i], 4);
    const bool want_nan = (want & 0x7FFFFFFF) > 0x7F800000;
    const bool have_nan = (have & 0x7FFFFFFF) > 0x7F800000;
    if (want_nan && have_nan) continue;
    const int64_t off = ordered(want) - ordered(have);
    if (want_nan || have_nan || off > c.tolerance_ulp || -off > c.tolerance_ulp) {
      return static_cast<int64_t>(i);
    }
  }
  return -1;
}

}  // namespace pagoda::primitives
