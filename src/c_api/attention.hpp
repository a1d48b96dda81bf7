// The structs of calls as those of the C++ API.
#pragma once

#include "pagoda/attention.hpp"
#include "pagoda/pagoda.h"
#include "pagoda/status.hpp"

namespace pagoda::c_api {

[[nodiscard]] Status to_attention(const pagoda_attention* from, Attention& to);
[[nodiscard]] Status to_append_kv(const pagoda_append_kv_args* from, AppendKV& to);
[[nodiscard]] Status to_merge_states(const pagoda_merge_states_args* from, MergeStates& to);

}  // namespace pagoda::c_api
