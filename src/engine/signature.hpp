// Signature: the properties of a call that its plan depends on: shapes, strides, dtypes, lengths
// and mask parameters; never pointers, scales or page ids. With lengths in GPU memory: the device,
// the bounds, which arrays are present, and whether 16-byte copies can read Q, K and V. Comparing
// does not allocate.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"

namespace pagoda::engine {

// How a message writes the value of a property.
enum class PropertyText : uint8_t { kNumber, kPresence, kDType, kCacheKind };

class Signature {
 public:
  Signature() = default;
  explicit Signature(const core::Problem& problem);

  // kInvalidArgument names the first field in which `problem` differs from the planned call.
  [[nodiscard]] Status match(const core::Problem& problem) const;
  // Whether it differs in none.
  [[nodiscard]] bool matches(const core::Problem& problem) const;

 private:
  // A field that differs; `name` is null where none does. Its text is made for messages only.
  struct Difference {
    const char* name = nullptr;
    int64_t index = -1;  // >= 0: the field is name[index]
    int64_t value = 0, planned = 0;
    PropertyText text = PropertyText::kNumber;
  };
  [[nodiscard]] Difference difference(const core::Problem& problem) const;

  std::vector<int64_t> numbers_;  // all properties but the lengths, in the order of walk()
  std::vector<int32_t> lengths_;  // [batch, 4]: seqlen_q, rows, seqlen_kv, q_position; host
  std::vector<int32_t> valid_;    // lengths of all padding masks, concatenated; host only
};

}  // namespace pagoda::engine
