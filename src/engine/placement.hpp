// Whether everything that a call names lies where its back end reads.
#pragma once

#include "core/backend.hpp"

namespace pagoda::engine {

// Tensors only: of spans and pointers the place can't be seen. Absent tensors pass. The device is
// that of q, of k_new, of partial_out.
[[nodiscard]] Status check_placement(const core::Backend& backend, const Attention& attention);
[[nodiscard]] Status check_placement(const core::Backend& backend, const AppendKV& append);
[[nodiscard]] Status check_placement(const core::Backend& backend, const MergeStates& merge);

// Checked mode: asks the back end about every pointer. The call is valid otherwise.
[[nodiscard]] Status check_pointers(const core::Backend& backend, const Attention& attention);
[[nodiscard]] Status check_pointers(const core::Backend& backend, const AppendKV& append);

}  // namespace pagoda::engine
