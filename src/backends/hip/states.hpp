// append_kv, merge_states and the padding rows of attention on an AMD GPU.
#pragma once

#include "core/backend.hpp"

namespace pagoda::hip {

[[nodiscard]] Status append_kv(const AppendKV& append, const core::RunContext& context);
[[nodiscard]] Status merge_states(const MergeStates& merge, const core::RunContext& context);
void zero_padding_rows(const core::Problem& problem, const core::RunContext& context);

}  // namespace pagoda::hip
