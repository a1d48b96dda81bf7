// One output row computed a second time, in double precision, from regenerated keys and values,
// independently of the cache and of every kernel.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cli/replay/content.hpp"
#include "cli/replay/model_shape.hpp"
#include "cli/replay/synthesis.hpp"
#include "pagoda/dtype.hpp"
#include "testing/oracle/row.hpp"

namespace pagoda::replay {

struct CheckedRow {
  int64_t position = 0;  // of the query token
  int32_t layer = 0;
  int32_t q_head = 0;
};

// `dtype`: of the queries and the output.
[[nodiscard]] oracle::ExpectedRow reference_row(const ModelShape& model, const Synthesis& synthesis,
                                                const RequestContent& content,
                                                const CheckedRow& row, DType dtype);

// Compares `out` [head_dim] and `lse` with the reference; empty = they agree.
[[nodiscard]] std::string compare(const oracle::ExpectedRow& reference, const CheckedRow& row,
                                  std::span<const float> out, float lse);

}  // namespace pagoda::replay
