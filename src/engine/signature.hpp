// Signature: the properties of a call that its plan depends on: shapes, strides, dtypes, lengths
// and mask parameters; never pointers, scales or page ids. With lengths in GPU memory: the device,
// the bounds, and which arrays are present. Comparing does not allocate.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"

namespace pagoda::engine {

class Signature {
 public:
  Signature() = default;
  explicit Signature(const core::Problem& problem);

  // kInvalidArgument names the first field in which `problem` differs from the planned call.
  [[nodiscard]] Status match(const core::Problem& problem) const;

 private:
  std::vector<int64_t> numbers_;  // all properties but the lengths, in the order of walk()
  std::vector<int32_t> lengths_;  // [batch, 4]: seqlen_q, rows, seqlen_kv, q_position; host
  std::vector<int32_t> valid_;    // lengths of all padding masks, concatenated; host only
};

}  // namespace pagoda::engine
