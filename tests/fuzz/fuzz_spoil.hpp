// Overwrites one field of a call with an arbitrary value. Spans and page tables keep sizes that
// match their memory; tensors are allocated afterwards.
#pragma once

#include "fuzz_memory.hpp"

namespace pagoda::fuzz {

void spoil(FuzzedDataProvider& data, Memory& memory, Attention& attention);
// A shape, a stride, the rank or the dtype.
void spoil(FuzzedDataProvider& data, ConstTensor& tensor);

[[nodiscard]] Tensor writable(const ConstTensor& tensor);

}  // namespace pagoda::fuzz
