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

// "no kernel can serve this call: k1: why; k2: why; k3: else" becomes "why; else".
std::string brief(const std::string& reason) {
  const std::string opening = "no kernel can serve this call: ";
  if (!reason.starts_with(opening)) return reason;
  std::vector<std::string> seen;
  std::string text;
  for (size_t begin = opening.size(); begin < reason.size();) {
    const size_t end = std::min(reason.find("; ", begin), reason.size());
    std::string part = reason.substr(begin, end - begin);
    begin = end + 2;
    const size_t name = part.find(": ");
    if (name != std::string::npos && part.find(' ') > name) part = part.substr(name + 2);
    const std::string key = without_numbers(part);
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) continue;
    seen.push_back(key);
    text += (text.empty() ? "" : "; ") + part;
  }
  return text;
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
