// The list of findings of one run. Knows nothing of the machine: it drops repetitions and counts.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "emulator/report/report.hpp"

namespace pagoda::emulator {

class Findings {
 public:
  // The run ends at `max_reports` findings.
  explicit Findings(int max_reports) : max_reports_(static_cast<size_t>(max_reports)) {}

  // Keeps one finding for each kind, primitive and source line: the other lanes and iterations
  // repeat it.
  void add(Report report);

  [[nodiscard]] bool is_full() const { return reports_.size() >= max_reports_; }
  [[nodiscard]] const std::vector<Report>& reports() const { return reports_; }
  [[nodiscard]] std::vector<Report> take() { return std::exchange(reports_, {}); }

 private:
  size_t max_reports_;
  std::vector<Report> reports_;
};

}  // namespace pagoda::emulator
