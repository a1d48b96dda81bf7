// From a mask expression of the API to the ExpressionMask of GPU kernels. Host only; arrays are
// passed on as pointers and may be memory of the device.
#pragma once

#include <span>
#include <string>

#include "mask/expression_mask.hpp"
#include "pagoda/mask.hpp"

namespace pagoda::mask {

// Why no ExpressionMask says the same as this valid expression; empty = one does.
[[nodiscard]] std::string unsupported_mask_reason(std::span<const MaskNode> nodes);

// Only of what is not refused. An AND at the root becomes one interval, biases and a program of the
// remaining operands.
[[nodiscard]] ExpressionMask make_expression_mask(std::span<const MaskNode> nodes);

}  // namespace pagoda::mask
