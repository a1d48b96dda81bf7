// Masks as text: "causal", "window:127,0", "chunked:8192 & causal", "(window:3,3 | causal)".
#pragma once

#include <string>
#include <string_view>

#include "pagoda/mask.hpp"
#include "pagoda/status.hpp"

namespace pagoda::cli {

// What the help of a flag says about the grammar.
inline constexpr const char* kMaskGrammar =
    "none | causal | window:LEFT,RIGHT (inclusive; -1 = open) | chunked:N, combined with & and |";

// '&' binds tighter than '|'; spaces do not count. An error says where and what was expected.
[[nodiscard]] Result<Mask> parse_mask(std::string_view text);

}  // namespace pagoda::cli
