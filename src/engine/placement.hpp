// Checks that the memory of a call is memory that its back end reads.
#pragma once

#include "core/backend.hpp"

namespace pagoda::engine {

// Compares the device of every tensor and array with the back end's memory and with the device of
// q, k_new or partial_out. Absent ones pass.
[[nodiscard]] Status check_placement(const core::Backend& backend, const Attention& attention);
[[nodiscard]] Status check_placement(const core::Backend& backend, const AppendKV& append);
[[nodiscard]] Status check_placement(const core::Backend& backend, const MergeStates& merge);

// Checked mode: asks the back end about every pointer. The call must be valid otherwise.
[[nodiscard]] Status check_pointers(const core::Backend& backend, const Attention& attention);
[[nodiscard]] Status check_pointers(const core::Backend& backend, const AppendKV& append);
[[nodiscard]] Status check_pointers(const core::Backend& backend, const MergeStates& merge);

}  // namespace pagoda::engine
