// MaskMaterial: the arrays that masks of a case borrow (lengths, biases, bits), random and owned.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "pagoda/mask.hpp"
#include "testing/conformance/case.hpp"

namespace pagoda::conformance {

class MaskMaterial {
 public:
  // The extents of materialised biases: query rows and keys of the longest sequence or of the
  // padded tensors.
  MaskMaterial(const Case& c, int32_t rows, int32_t keys) : case_(c), rows_(rows), keys_(keys) {}

  // Random valid lengths, from nothing to more than there is.
  Mask padding();
  // Bias [batch or 1, (heads or 1,) rows, keys]; every fifth entry is -infinity.
  Mask additive(int32_t rank, bool broadcasts_batch, bool broadcasts_heads);
  Mask relative_bias(int64_t extent);
  // A speculative tree in the last rows: all of the cache, and each node's ancestors.
  Mask tree();
  // The first `n` keys, and random ones elsewhere with the given probability.
  Mask bits(int32_t n, double density);
  // A predicate of every coordinate but the sequence.
  Mask functor();

 private:
  // Keeps (row, key) of sequence b: turns a predicate into words.
  template <typename Keep>
  Mask bits_where(Keep keep);
  [[nodiscard]] const std::vector<Sequence>& sequences() const { return case_.lengths.sequences; }

  const Case& case_;
  int32_t rows_, keys_;
  std::deque<std::vector<float>> floats_;
  std::deque<std::vector<int32_t>> lengths_;
  std::deque<std::vector<int64_t>> offsets_;
  std::deque<std::vector<uint32_t>> words_;
};

}  // namespace pagoda::conformance
