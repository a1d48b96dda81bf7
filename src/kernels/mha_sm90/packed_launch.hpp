// The launch of packed rows, a stream-K partition: its CTAs. Host code.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "kernels/mha_sm90/instances.hpp"
#include "kernels/mha_sm90/launch_plan.hpp"

namespace pagoda::mha_sm90 {

// Whether row tiles that CTAs take whole occupy nearly all multiprocessors with one CTA each.
[[nodiscard]] bool is_one_each(int64_t row_tiles, int32_t num_sms);

// For sequences of all lengths: min_rows and max_rows are the defaults of Launch.
[[nodiscard]] Launch packed_launch(const core::Problem& problem, const Shape& shape,
                                   ScoreClass scores, LoadKind load, int32_t num_sms);

}  // namespace pagoda::mha_sm90
