// A kernel that the emulator can run by itself: it makes its data, launches and checks the result.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "emulator/machine/machine.hpp"

namespace pagoda::emulate {

struct Outcome {
  emulator::Result result;
  uint64_t checked = 0;     // elements of the output
  uint64_t mismatches = 0;  // of these
  std::string first_mismatch;
  double error_share = 0;  // of rounded results: the worst error as a share of its limit

  // Compares one element with what a plain computation gives.
  template <class T>
  void check(const char* what, size_t index, const T& got, const T& expected) {
    ++checked;
    if (got == expected) return;
    if (++mismatches > 1) return;
    first_mismatch = std::string(what) + "[" + std::to_string(index) +
                     "] = " + std::to_string(got) + ", not " + std::to_string(expected);
  }
  // What another comparison has found.
  void add(uint64_t more_checked, uint64_t more_mismatches, const std::string& message) {
    checked += more_checked;
    if (mismatches == 0) first_mismatch = message;
    mismatches += more_mismatches;
  }
  [[nodiscard]] bool is_right() const { return result.is_clean() && mismatches == 0; }
};

struct EmulatedKernel {
  const char* name;  // "family/kernel"
  const char* arch;  // the first that has its instructions: "sm_90"
  const char* description;
  Outcome (*run)(const emulator::Options&);  // options.seed makes the data too
  // The finding that it exists to show; nothing for a kernel that is right.
  std::optional<emulator::ReportKind> planted = std::nullopt;
};

inline std::vector<uint32_t> random_words(size_t count, uint64_t seed) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  std::vector<uint32_t> words(count);
  for (uint32_t& word : words) word = static_cast<uint32_t>(random());
  return words;
}

}  // namespace pagoda::emulate
