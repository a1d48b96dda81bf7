// append_kv() and merge_states() called from fuzzer bytes.
#pragma once

#include "fuzz_memory.hpp"

namespace pagoda::fuzz {

// Aborts if an accepted call differs from a plain loop.
void append_once(FuzzedDataProvider& data, Memory& memory);
void merge_once(FuzzedDataProvider& data, Memory& memory);

}  // namespace pagoda::fuzz
