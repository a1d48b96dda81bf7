// Counts the reasons for skipped cases. Reasons that differ in numbers only are counted as one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pagoda::cli {

struct SkipReason {
  std::string text;     // of the first such case, without names of kernels
  std::string example;  // the name of that case
  int64_t count = 0;
};

class SkipReasons {
 public:
  void add(const std::string& reason, const std::string& test_case);
  // The most frequent first.
  [[nodiscard]] std::vector<SkipReason> sorted() const;

 private:
  std::map<std::string, SkipReason> by_text_;  // without numbers
};

}  // namespace pagoda::cli
