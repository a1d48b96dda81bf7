// The instances of the toy family: element type and the largest head dim.
#pragma once

#include "pagoda/dtype.hpp"

namespace pagoda::mha_toy {

struct Shape {
  const char* name;
  DType dtype;
  int depth;
};

// clang-format off
inline constexpr Shape kShapes[] = {
    {"toy.d64.bf16", DType::kBF16, 64},
    {"toy.d128.bf16", DType::kBF16, 128},
};
// clang-format on

}  // namespace pagoda::mha_toy
