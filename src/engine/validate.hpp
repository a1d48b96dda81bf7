// Validates a call completely, before anything is planned or written, and puts it into normal form.
#pragma once

#include "core/backend.hpp"
#include "core/problem.hpp"
#include "pagoda/attention.hpp"

namespace pagoda::engine {

// The Problem borrows every pointer and span of `attention`, its mask included: it must not outlive
// it. Every error names the field, its value and the limit. Never reads through q, k, v or out.
// Where the back end's memory is a device's, contents of arrays are not read either. `options` are
// checked first, as by check_options().
[[nodiscard]] Result<core::Problem> validate(const Attention& attention, const Options& options);
[[nodiscard]] Result<core::Problem> validate_for(const core::Backend& backend,
                                                 const Attention& attention, bool checks_indices);

[[nodiscard]] Status validate(const core::Backend& backend, const AppendKV& append,
                              const Options& options);
[[nodiscard]] Status validate(const core::Backend& backend, const MergeStates& merge,
                              const Options& options);

}  // namespace pagoda::engine
