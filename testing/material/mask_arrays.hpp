// MaskArrays: the arrays that masks of emulator tests point to (lengths, biases, bits), as buffers
// of the emulator, and the sequences that they are made for.
#pragma once

#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "pagoda/mask.hpp"
#include "testing/material/run_on_machine.hpp"

namespace pagoda::material {

// Elements that belong to no (row, key) pair are NaN, or set bits.
class MaskArrays {
 public:
  struct Sequence {
    int32_t rows, keys, position;
  };
  // Common cache lengths, negative positions, a position before the last key and one past it,
  // lengths next to multiples of 32, one key, no key. The last one's words of bits end where the
  // array ends.
  static constexpr Sequence kSequences[] = {{70, 70, 0}, {9, 150, 141}, {20, 12, -8},
                                            {5, 90, 40}, {6, 64, 70},   {4, 257, 253},
                                            {3, 1, -2},  {2, 0, -2},    {6, 45, 39}};
  static constexpr auto kBatch = static_cast<int32_t>(std::size(kSequences));
  static constexpr int32_t kRows = 70, kKeys = 257;  // the maxima
  static constexpr int32_t kHeads = 3;

  explicit MaskArrays(uint32_t seed) : rng_(seed) {}

  Mask padding() {
    std::vector<int32_t>& valid = lengths_.emplace_back();
    for (const Sequence& s : kSequences) valid.push_back(below(s.keys + s.keys / 4 + 2));
    buffers.push_back(emulator::input("lengths", valid.data(), valid.size()));
    return Mask::padding(valid);
  }
  Mask additive(int32_t rank, bool broadcasts_batch, bool broadcasts_heads) {
    const int64_t batch = broadcasts_batch ? 1 : kBatch;
    const int64_t heads = rank == 3 || broadcasts_heads ? 1 : kHeads;
    std::vector<float>& bias = floats(batch * heads * kRows * kKeys);
    for (size_t i = 0; i < bias.size(); ++i) {
      const auto key = static_cast<int32_t>(i % kKeys);
      const auto row = static_cast<int32_t>(i / kKeys % kRows);
      const Sequence& s = kSequences[i / static_cast<size_t>(heads * kRows * kKeys)];
      if (broadcasts_batch || (row < s.rows && key < s.keys))
        bias[i] = below(6) == 0 ? -std::numeric_limits<float>::infinity() : real();
    }
    return Mask::additive(
        rank == 3
            ? ConstTensor::contiguous(bias.data(), DType::kF32, {batch, kRows, kKeys})
            : ConstTensor::contiguous(bias.data(), DType::kF32, {batch, heads, kRows, kKeys}));
  }
  Mask relative_bias(int32_t extent) {
    std::vector<float>& table = floats(int64_t{kHeads} * (2 * extent + 1));
    for (float& entry : table)
      entry = below(9) == 0 ? -std::numeric_limits<float>::infinity() : real();
    return Mask::relative_bias(
        ConstTensor::contiguous(table.data(), DType::kF32, {kHeads, 2 * extent + 1}));
  }
  // The first `n` keys, and others with probability `density`.
  Mask bits(int32_t n, double density) {
    const auto percent = static_cast<int32_t>(std::lround(100 * density));
    std::vector<int64_t>& offsets = offsets_.emplace_back();
    std::vector<uint32_t>& words = words_.emplace_back();
    for (const Sequence& s : kSequences) {
      offsets.push_back(static_cast<int64_t>(words.size()));
      for (int32_t row = 0; row < s.rows; ++row) {
        const size_t first = words.size();
        words.resize(first + static_cast<size_t>((s.keys + 31) / 32));
        for (size_t k = 0; k < 32 * (words.size() - first); ++k) {
          const auto key = static_cast<int32_t>(k);
          const bool is_set = key < n || key >= s.keys || below(100) < percent;
          if (is_set) words[first + k / 32] |= 1U << (k % 32);
        }
      }
    }
    offsets.push_back(static_cast<int64_t>(words.size()));
    buffers.push_back(emulator::input("words", words.data(), words.size()));
    buffers.push_back(emulator::input("offsets", offsets.data(), offsets.size()));
    return Mask::bits(words, offsets);
  }
  int32_t below(int32_t n) { return static_cast<int32_t>(rng_() % static_cast<uint32_t>(n)); }

  std::vector<emulator::GlobalBuffer> buffers;

 private:
  float real() { return static_cast<float>(below(1000)) / 100.0F - 5.0F; }
  std::vector<float>& floats(int64_t count) {
    std::vector<float>& all = floats_.emplace_back(static_cast<size_t>(count), std::nanf(""));
    buffers.push_back(emulator::input("biases", all.data(), all.size()));
    return all;
  }

  std::mt19937 rng_;
  std::deque<std::vector<int32_t>> lengths_;
  std::deque<std::vector<float>> floats_;
  std::deque<std::vector<uint32_t>> words_;
  std::deque<std::vector<int64_t>> offsets_;
};

}  // namespace pagoda::material
