// Masks made from fuzzer bytes.
#pragma once

#include "fuzz_memory.hpp"

namespace pagoda::fuzz {

// The properties of a call that its mask depends on.
struct MaskShape {
  std::span<const int32_t> seqlens_q, seqlens_kv;  // [batch]
  int64_t num_q_heads = 1;
};

// An expression of at most nine nodes; with `is_spoiled`, one of its arguments may be wrong.
[[nodiscard]] Mask make_mask(FuzzedDataProvider& data, Memory& memory, const MaskShape& shape,
                             bool is_spoiled);

}  // namespace pagoda::fuzz
