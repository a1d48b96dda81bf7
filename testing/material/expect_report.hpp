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

// Empty: in every mode one of 20 seeds has a report of that kind with `text` in it.
[[nodiscard]] inline std::string missing_report(Result (*launch)(Mode, uint64_t seed),
                                                ReportKind kind, std::string_view text) {
  for (const Mode mode : kModes) {
    std::string reports;
    for (uint64_t seed = 1; seed <= 20 && reports.find(text) == std::string::npos; ++seed) {
      for (const Report& report : launch(mode, seed).reports) {
        if (report.kind == kind) reports += to_string(report);
      }
    }
    if (reports.find(text) == std::string::npos) return std::string(name(mode)) + ": " + reports;
  }
  return "";
}

}  // namespace pagoda::emulator
