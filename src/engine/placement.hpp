// Checks that the memory of a call is memory that its back end reads.
#pragma once

#include "core/backend.hpp"

namespace pagoda::engine {

// Compares BasicTensor::device of every tensor with the back end's memory and the device of q,
// k_new or partial_out. Spans and pointers name no device and are not checked. Absent tensors
// pass.
[[nodiscard]] Status check_placement(const core::Backend& backend, const Attention& attention);
[[nodiscard]] Status check_placement(const core::Backend& backend, const AppendKV& append);
[[nodiscard]] Status check_placement(const core::Backend& backend, const MergeStates& merge);

// Checked mode: asks the back end about every pointer. The call must be valid otherwise.
[[nodiscard]] Status check_pointers(const core::Backend& backend, const Attention& attention);
[[nodiscard]] Status check_pointers(const core::Backend& backend, const AppendKV& append);

}  // namespace pagoda::engine
