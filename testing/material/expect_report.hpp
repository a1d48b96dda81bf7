// For tests: the reports of a run as text, and the lack of an expected one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "emulator/machine/machine.hpp"

namespace pagoda::emulator {

[[nodiscard]] inline std::string all_reports(const Result& result) {
  std::string all;
  for (const Report& report : result.reports) all += to_string(report) + "\n";
  return all;
}

// Empty: there is a report of that kind, at that line of the test, with `text` somewhere in it.
[[nodiscard]] inline std::string missing_report(const Result& result, ReportKind kind,
                                                uint32_t line, std::string_view text) {
  for (const Report& report : result.reports) {
    if (report.kind == kind && report.line == line &&
        to_string(report).find(text) != std::string::npos) {
      return "";
    }
  }
  return "no " + std::string(name(kind)) + " at line " + std::to_string(line) + " with '" +
         std::string(text) + "' in:\n" + all_reports(result);
}

}  // namespace pagoda::emulator
