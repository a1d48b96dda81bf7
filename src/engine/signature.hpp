// Signature: what a plan was made for, kept exactly and compared without allocating. It holds
// shapes, strides, dtypes, lengths and mask parameters; never pointers, scales or page ids. Of a
// call whose lengths lie on a device it holds the device, the bounds and which arrays there are.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"

namespace pagoda::engine {

class Signature {
 public:
  Signature() = default;
  explicit Signature(const core::Problem& problem);

  // Complains about the first field in which `problem` differs from the planned one.
  [[nodiscard]] Status match(const core::Problem& problem) const;

 private:
  std::vector<int64_t> numbers_;  // everything but the lengths, in a fixed order
  std::vector<int32_t> lengths_;  // [batch, 3]: seqlen_q, seqlen_kv, q_position; on the host
  std::vector<int32_t> valid_;    // padding masks' lengths, one after the other; on the host
};

}  // namespace pagoda::engine
