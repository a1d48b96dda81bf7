// Validates a whole call before anything is planned or written, and converts it to a Problem.
#pragma once

#include "core/backend.hpp"
#include "core/problem.hpp"
#include "pagoda/attention.hpp"

namespace pagoda::engine {

// The Problem borrows every pointer and span of `attention`, including its mask, and must not
// outlive it. Errors name the field, its value and the limit. Never reads through q, k, v or out,
// nor any array in GPU memory. Calls check_options() first.
[[nodiscard]] Result<core::Problem> validate(const Attention& attention, const Options& options);
[[nodiscard]] Result<core::Problem> validate_for(const core::Backend& backend,
                                                 const Attention& attention, bool checks_indices);

[[nodiscard]] Status validate(const core::Backend& backend, const AppendKV& append,
                              const Options& options);
[[nodiscard]] Status validate(const core::Backend& backend, const MergeStates& merge,
                              const Options& options);

}  // namespace pagoda::engine
