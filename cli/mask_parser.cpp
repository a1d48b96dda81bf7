// Recursive descent over  or := and ('|' and)*;  and := term ('&' term)*;  term := '(' or ')' |
// name.
#include "cli/mask_parser.hpp"

#include <charconv>
#include <fmt/format.h>
#include <optional>

namespace pagoda::cli {
namespace {

constexpr int kMaxDepth = 32;  // of parentheses: user input must not exhaust the stack

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Mask> parse() {
    std::optional<Mask> mask = parse_or(0);
    if (mask && !at_end()) mask = expected("'&', '|' or the end");
    if (!mask) return Status::invalid("mask", "'" + std::string(text_) + "'", error_);
    return *std::move(mask);
  }

 private:
  std::optional<Mask> parse_or(int depth) {
    std::optional<Mask> mask = parse_and(depth);
    while (mask && take("|")) {
      std::optional<Mask> rhs = parse_and(depth);
      if (!rhs) return rhs;
      mask = *mask | *rhs;
    }
    return mask;
  }

  std::optional<Mask> parse_and(int depth) {
    std::optional<Mask> mask = parse_term(depth);
    while (mask && take("&")) {
      std::optional<Mask> rhs = parse_term(depth);
      if (!rhs) return rhs;
      mask = *mask & *rhs;
    }
    return mask;
  }

  std::optional<Mask> parse_term(int depth) {
    if (take("(")) {
      if (depth == kMaxDepth) return expected("fewer parentheses");
      std::optional<Mask> mask = parse_or(depth + 1);
      if (mask && !take(")")) return expected("')'");
      return mask;
    }
    if (take("none")) return Mask::none();
    if (take("causal")) return Mask::causal();
    if (take("window:")) {
      const std::optional<int64_t> left = take_number();
      if (!left || *left < -1 || !take(",")) return expected("window:LEFT,RIGHT");
      const std::optional<int64_t> right = take_number();
      if (!right || *right < -1) return expected("window:LEFT,RIGHT");
      return Mask::window(*left, *right);
    }
    if (take("chunked:")) {
      const std::optional<int64_t> chunk = take_number();
      if (!chunk || *chunk < 1) return expected("chunked:N with N >= 1");
      return Mask::chunked(*chunk);
    }
    return expected("none, causal, window:LEFT,RIGHT, chunked:N or '('");
  }

  void skip_spaces() {
    while (position_ < text_.size() && text_[position_] == ' ') ++position_;
  }
  bool at_end() {
    skip_spaces();
    return position_ == text_.size();
  }
  bool take(std::string_view token) {
    skip_spaces();
    if (!text_.substr(position_).starts_with(token)) return false;
    position_ += token.size();
    return true;
  }
  std::optional<int64_t> take_number() {
    skip_spaces();
    int64_t value = 0;
    const char* begin = text_.data() + position_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) return std::nullopt;
    position_ += static_cast<size_t>(end - begin);
    return value;
  }
  std::optional<Mask> expected(const std::string& what) {
    if (error_.empty()) error_ = fmt::format("expected {} at column {}", what, position_ + 1);
    return std::nullopt;
  }

  std::string_view text_;
  size_t position_ = 0;
  std::string error_;
};

}  // namespace

Result<Mask> parse_mask(std::string_view text) { return Parser(text).parse(); }

}  // namespace pagoda::cli
