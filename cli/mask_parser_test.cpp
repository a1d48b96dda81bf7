// Tests of the mask grammar: structure, precedence, and that every error says where.
#include "cli/mask_parser.hpp"

#include <gtest/gtest.h>
#include <string>

namespace pagoda::cli {
namespace {

std::string shape(const Mask& mask, int32_t index = -1) {
  const auto& nodes = mask.nodes();
  const MaskNode& node = index < 0 ? nodes.back() : nodes[static_cast<size_t>(index)];
  switch (node.kind) {
    case MaskKind::kNone: return "n";
    case MaskKind::kCausal: return "c";
    case MaskKind::kWindow:
      return "w" + std::to_string(node.left) + "," + std::to_string(node.right);
    case MaskKind::kChunked: return "k" + std::to_string(node.chunk);
    case MaskKind::kAnd: return "(" + shape(mask, node.lhs) + "&" + shape(mask, node.rhs) + ")";
    case MaskKind::kOr: return "(" + shape(mask, node.lhs) + "|" + shape(mask, node.rhs) + ")";
    default: return "?";
  }
}

std::string parsed(const std::string& text) {
  const Result<Mask> mask = parse_mask(text);
  return mask ? shape(*mask) : mask.status().message();
}

TEST(MaskParser, names_and_bounds) {
  EXPECT_EQ(parsed("none"), "n");
  EXPECT_EQ(parsed(" causal "), "c");
  EXPECT_EQ(parsed("window:127,0"), "w127,0");
  EXPECT_EQ(parsed("window:-1, 5"), "w-1,5");
  EXPECT_EQ(parsed("chunked:64"), "k64");
}

TEST(MaskParser, and_binds_tighter_than_or) {
  EXPECT_EQ(parsed("causal|chunked:4&window:1,1"), "(c|(k4&w1,1))");
  EXPECT_EQ(parsed("(causal|chunked:4)&window:1,1"), "((c|k4)&w1,1)");
  EXPECT_EQ(parsed("causal & none & causal"), "((c&n)&c)");
}

TEST(MaskParser, errors_say_where_and_what) {
  EXPECT_EQ(parsed("causl"),
            "mask is 'causl'; expected none, causal, window:LEFT,RIGHT, chunked:N or '(' at "
            "column 1");
  for (const char* bad : {"", "causal causal", "window:1", "window:-2,0", "chunked:0", "(causal",
                          "causal &", "causal)", "window:99999999999999999999,0"}) {
    EXPECT_FALSE(parse_mask(bad)) << bad;
    EXPECT_NE(parsed(bad).find("at column"), std::string::npos) << bad;
  }
  EXPECT_FALSE(parse_mask(std::string(1000, '(')));
}

}  // namespace
}  // namespace pagoda::cli
