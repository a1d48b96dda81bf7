// Digest: 128 bits that identify the text that a kernel is compiled from, and that detect damaged
// files. FNV-1a with 128 bits (Fowler, Noll, Vo: offset basis and prime are theirs). Not a
// cryptographic hash: it does not detect files that somebody has forged.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace pagoda::runtime_functor {

class Digest {
 public:
  // The length is part of it: {"ab", "c"} differs from {"a", "bc"}.
  Digest& add(std::string_view text) {
    add_bytes(text);
    const uint64_t bytes = text.size();
    add_bytes({reinterpret_cast<const char*>(&bytes), sizeof bytes});
    return *this;
  }
  [[nodiscard]] std::array<uint64_t, 2> value() const {
    return {static_cast<uint64_t>(state_ >> 64U), static_cast<uint64_t>(state_)};
  }
  // 32 hexadecimal digits.
  [[nodiscard]] std::string text() const {
    std::string digits;
    for (const uint64_t word : value()) {
      for (int shift = 60; shift >= 0; shift -= 4) {
        digits += "0123456789abcdef"[(word >> static_cast<unsigned>(shift)) & 15U];
      }
    }
    return digits;
  }

 private:
  __extension__ using Word = unsigned __int128;

  void add_bytes(std::string_view bytes) {
    constexpr Word kPrime = (Word{1} << 88U) + 0x13BU;
    for (const char byte : bytes) {
      state_ = (state_ ^ static_cast<unsigned char>(byte)) * kPrime;
    }
  }

  Word state_ = (Word{0x6c62272e07bb0142U} << 64U) + 0x62b821756295c58dU;
};

}  // namespace pagoda::runtime_functor
