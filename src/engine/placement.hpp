// Checks of a call's memory: its back end can read it, and what is written is nothing else's.
#pragma once

#include "core/backend.hpp"

namespace pagoda::engine {

// Compares the device of every tensor and array with the back end's memory and with the device of
// q, k_new or partial_out. Absent ones pass.
[[nodiscard]] Status check_placement(const core::Backend& backend, const Attention& attention);
[[nodiscard]] Status check_placement(const core::Backend& backend, const AppendKV& append);
[[nodiscard]] Status check_placement(const core::Backend& backend, const MergeStates& merge);

// Compares the memory of out, lse and row_max with that of every other array, and of each other.
// The call must be valid otherwise.
[[nodiscard]] Status check_outputs_apart(const Attention& attention);

// Checked mode: asks the back end about every pointer. The call must be valid otherwise.
[[nodiscard]] Status check_pointers(const core::Backend& backend, const Attention& attention);
[[nodiscard]] Status check_pointers(const core::Backend& backend, const AppendKV& append);
[[nodiscard]] Status check_pointers(const core::Backend& backend, const MergeStates& merge);

}  // namespace pagoda::engine
