// Merges attention over disjoint sets of keys.
#pragma once

#include "pagoda/attention.hpp"

namespace pagoda::cpu {

// `merge` has passed validation.
void merge_states(const MergeStates& merge, Executor& executor);

}  // namespace pagoda::cpu
