// Writes new keys and values into the slots of a paged cache.
#pragma once

#include "pagoda/attention.hpp"

namespace pagoda::cpu {

// `append` has passed validation: every slot is negative (skipped) or inside the cache.
void append_kv(const AppendKV& append, Executor& executor);

}  // namespace pagoda::cpu
