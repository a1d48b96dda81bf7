// One output row computed a second time, in double precision, from regenerated keys and values:
// neither the cache nor any kernel has a part in it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/replay/content.hpp"
#include "cli/replay/model_shape.hpp"
#include "cli/replay/synthesis.hpp"
#include "pagoda/dtype.hpp"

namespace pagoda::replay {

struct CheckedRow {
  int64_t position = 0;  // of the query token
  int32_t layer = 0;
  int32_t q_head = 0;
};

struct RowReference {
  std::vector<double> out;  // [head_dim]
  double lse = 0;
};

[[nodiscard]] RowReference reference_row(const ModelShape& model, const Synthesis& synthesis,
                                         const RequestContent& content, const CheckedRow& row);

// How far an output may be from the reference.
struct RowTolerance {
  double rms;      // of the error, relative to the root mean square of the reference
  double element;  // of one element's error, relative likewise
  double lse;      // absolute
};
[[nodiscard]] RowTolerance tolerance(DType dtype);

// Empty where `out` [head_dim] and `lse` agree with the reference, otherwise what does not.
[[nodiscard]] std::string compare(const RowReference& reference, std::span<const float> out,
                                  float lse, DType dtype);

}  // namespace pagoda::replay
