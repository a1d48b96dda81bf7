// The arrays that masks borrow. The values of a sequence depend on its id only, so that it can
// move to another batch; entries past a sequence's lengths are NaN or set bits.
#include "testing/conformance/mask_material.hpp"

#include <cmath>
#include <limits>

#include "testing/conformance/random.hpp"

namespace pagoda::conformance {

Mask MaskMaterial::padding() {
  std::vector<int32_t>& valid = lengths_.emplace_back();
  for (const Sequence& s : sequences()) {
    Random random(case_.seed + "/padding", s.id);
    valid.push_back(static_cast<int32_t>(random.below(s.kv + s.kv / 4 + 2)));
  }
  return Mask::padding(valid);
}

Mask MaskMaterial::additive(int32_t rank, bool broadcasts_batch, bool broadcasts_heads) {
  const auto batch = static_cast<int64_t>(broadcasts_batch ? 1 : sequences().size());
  const int64_t heads = rank == 3 || broadcasts_heads ? 1 : case_.q_heads;
  std::vector<float>& bias = floats_.emplace_back(
      static_cast<size_t>(batch * heads * rows_ * keys_), std::numeric_limits<float>::quiet_NaN());
  for (int64_t b = 0; b < batch; ++b) {
    const Sequence all{.q = rows_, .kv = keys_};
    const Sequence& s = broadcasts_batch ? all : sequences()[static_cast<size_t>(b)];
    Random random(case_.seed + "/additive", s.id);
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t i = 0; i < s.q; ++i) {
        for (int64_t j = 0; j < s.kv; ++j) {
          const float value = random.normal();
          bias[static_cast<size_t>(((b * heads + h) * rows_ + i) * keys_ + j)] =
              random.below(5) == 0 ? -std::numeric_limits<float>::infinity() : value;
        }
      }
    }
  }
  return Mask::additive(
      rank == 3 ? ConstTensor::contiguous(bias.data(), DType::kF32, {batch, rows_, keys_})
                : ConstTensor::contiguous(bias.data(), DType::kF32, {batch, heads, rows_, keys_}));
}

Mask MaskMaterial::relative_bias(int64_t extent) {
  Random random(case_.seed + "/relative");
  std::vector<float>& table =
      floats_.emplace_back(static_cast<size_t>(case_.q_heads * (2 * extent + 1)));
  for (float& entry : table) entry = random.normal();
  return Mask::relative_bias(
      ConstTensor::contiguous(table.data(), DType::kF32, {case_.q_heads, 2 * extent + 1}));
}

template <typename Keep>
Mask MaskMaterial::bits_where(Keep keep) {
  std::vector<int64_t>& offsets = offsets_.emplace_back();
  std::vector<uint32_t>& words = words_.emplace_back();
  for (const Sequence& s : sequences()) {
    Random random(case_.seed + "/bits", s.id);
    words.push_back(0);  // an unused word: offsets need not be dense
    offsets.push_back(static_cast<int64_t>(words.size()));
    for (int32_t i = 0; i < s.q; ++i) {
      const auto row = words.size();
      words.resize(row + static_cast<size_t>((s.kv + 31) / 32), 0);
      for (int32_t j = 0; j < (s.kv + 31) / 32 * 32; ++j) {
        // Bits past the last key are set: they must not make anything visible.
        if (j >= s.kv || keep(s, i, j, random)) {
          words[row + static_cast<size_t>(j / 32)] |= uint32_t{1} << (j % 32);
        }
      }
    }
  }
  offsets.push_back(static_cast<int64_t>(words.size()));
  return Mask::bits(words, offsets);
}

Mask MaskMaterial::tree() {
  return bits_where([](const Sequence& s, int32_t i, int32_t j, Random&) {
    const int32_t first = s.kv - s.q;  // row i is node i of the tree, its key is first + i
    if (j < first) return true;
    for (int32_t node = i;; node = (node - 1) / 3) {  // ancestors in a tree of three branches
      if (j - first == node) return true;
      if (node == 0) return false;
    }
  });
}

Mask MaskMaterial::bits(int32_t n, double density) {
  return bits_where([=](const Sequence&, int32_t, int32_t j, Random& random) {
    const bool is_lucky = random.uniform() < density;
    return j < n || is_lucky;
  });
}

Mask MaskMaterial::functor() {
  return Mask::functor([](void*, int32_t, int32_t head, int64_t q, int64_t k) {
    return (q * 7 + k * 3 + head) % 5 != 0;
  });
}

}  // namespace pagoda::conformance
