// append_kv() and merge_states() called from fuzzer bytes.
#pragma once

#include "fuzz_memory.hpp"

namespace pagoda::fuzz {

// Aborts where an accepted call does something else than a plain loop.
void append_once(FuzzedDataProvider& data, Memory& memory);
void merge_once(FuzzedDataProvider& data, Memory& memory);

}  // namespace pagoda::fuzz
