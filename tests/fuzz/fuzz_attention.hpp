// An Attention made from fuzzer bytes: any kind of call, small, sometimes with one or two fields
// that hold nonsense; the memory is always as large as the (possibly nonsensical) call says.
#pragma once

#include "fuzz_memory.hpp"

namespace pagoda::fuzz {

struct FuzzedCall {
  Attention attention;
  Options options;
  bool is_spoiled = false;  // some field was overwritten; the call may still be valid
};

[[nodiscard]] FuzzedCall make_call(FuzzedDataProvider& data, Memory& memory);

// Writes small random numbers into every live element of a valid call's q, k and v; what is not
// live keeps its NaN.
void fill_inputs(const FuzzedCall& call, Memory& memory);

}  // namespace pagoda::fuzz
