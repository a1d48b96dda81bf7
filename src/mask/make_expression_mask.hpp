// Makes the ExpressionMask of GPU kernels from a mask expression of the API. Host only; arrays are
// passed on as pointers and may be device memory.
#pragma once

#include <span>
#include <string>

#include "mask/expression_mask.hpp"
#include "pagoda/mask.hpp"

namespace pagoda::mask {

// Why no ExpressionMask is equivalent to this valid expression; empty = supported.
[[nodiscard]] std::string unsupported_mask_reason(std::span<const MaskNode> nodes);

// Requires unsupported_mask_reason(nodes).empty(). An AND at the root becomes one interval, biases
// and a program of the remaining operands.
[[nodiscard]] ExpressionMask make_expression_mask(std::span<const MaskNode> nodes);

}  // namespace pagoda::mask
