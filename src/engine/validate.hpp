// Validates a call completely, before anything is planned or written, and puts it into normal form.
#pragma once

#include "core/problem.hpp"
#include "pagoda/attention.hpp"

namespace pagoda::engine {

// The Problem borrows every pointer and span of `attention`, its mask included: it must not outlive
// it. Every error names the field, its value and the limit. Never reads through q, k, v or out.
[[nodiscard]] Result<core::Problem> validate(const Attention& attention, const Options& options);

[[nodiscard]] Status validate(const AppendKV& append, const Options& options);
[[nodiscard]] Status validate(const MergeStates& merge, const Options& options);

}  // namespace pagoda::engine
