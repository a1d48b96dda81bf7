// Overwrites one field of a call with nonsense. What a span or a page table points to keeps its
// size, so the call says nothing about memory that is not true; tensors get their memory
// afterwards.
#pragma once

#include "fuzz_memory.hpp"

namespace pagoda::fuzz {

void spoil(FuzzedDataProvider& data, Memory& memory, Attention& attention);
// A shape, a stride, the rank or the dtype.
void spoil(FuzzedDataProvider& data, ConstTensor& tensor);

[[nodiscard]] Tensor writable(const ConstTensor& tensor);

}  // namespace pagoda::fuzz
