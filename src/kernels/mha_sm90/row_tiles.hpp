// The launch of row tiles of tokens: which of the kinds of row tiles serves a call, with how many
// heads, KV splits and CTAs. Host code.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "kernels/common/schedule_choice.hpp"
#include "kernels/mha_sm90/instances.hpp"
#include "kernels/mha_sm90/launch_plan.hpp"

namespace pagoda::mha_sm90 {

// For sequences of all lengths: min_rows and max_rows are the defaults of Launch.
[[nodiscard]] Launch tokens_launch(const core::Problem& problem, const Shape& shape,
                                   ScoreClass scores, LoadKind load, int32_t num_sms,
                                   const kernels::ScheduleChoice& choice);

}  // namespace pagoda::mha_sm90
