// The key of a reason is its text with every number replaced.
#include "cli/skip_reasons.hpp"

#include <algorithm>
#include <cctype>

namespace pagoda::cli {
namespace {

bool is_digit(char letter) { return std::isdigit(static_cast<unsigned char>(letter)) != 0; }

std::string without_numbers(const std::string& text) {
  std::string key;
  for (const char letter : text) {
    if (!is_digit(letter)) {
      key += letter;
    } else if (key.empty() || key.back() != '#') {
      key += '#';
    }
  }
  return key;
}

// "no kernel can serve this call: k: why (the closest of 9 kernels; ...)" becomes "why".
std::string brief(const std::string& reason) {
  const std::string opening = "no kernel can serve this call: ";
  if (!reason.starts_with(opening)) return reason;
  std::string text = reason.substr(opening.size());
  const size_t name = text.find(": ");
  if (name != std::string::npos && text.find(' ') > name) text = text.substr(name + 2);
  return text.substr(0, text.find(" (the closest of "));
}

}  // namespace

void SkipReasons::add(const std::string& reason, const std::string& test_case) {
  const std::string text = brief(reason);
  SkipReason& entry = by_text_[without_numbers(text)];
  if (entry.count++ > 0) return;
  entry.text = text;
  entry.example = test_case;
}

std::vector<SkipReason> SkipReasons::sorted() const {
  std::vector<SkipReason> list;
  for (const auto& [key, reason] : by_text_) list.push_back(reason);
  std::stable_sort(list.begin(), list.end(),
                   [](const SkipReason& a, const SkipReason& b) { return a.count > b.count; });
  return list;
}

}  // namespace pagoda::cli
