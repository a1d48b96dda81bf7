// Reports and modes as text.
#include "emulator/report/report.hpp"

namespace pagoda::emulator {

std::string_view name(ReportKind kind) {
  switch (kind) {
    case ReportKind::kRace: return "race";
    case ReportKind::kDeadlock: return "deadlock";
    case ReportKind::kUninitialised: return "uninitialised read";
    case ReportKind::kBounds: return "out of bounds";
    case ReportKind::kProtocol: return "protocol";
  }
  return "?";
}

std::string to_string(const Report& report) {
  std::string text = std::string(name(report.kind)) + ": " + report.message;
  text += "\n  by " + report.primitive + " at " + report.file + ":" + std::to_string(report.line);
  text += ", " + report.who + "\n  kernel " + report.kernel + ", mode " +
          std::string(name(report.mode)) + ", seed " + std::to_string(report.seed);
  return text;
}

std::string_view name(Mode mode) {
  switch (mode) {
    case Mode::kRoundRobin: return "round-robin";
    case Mode::kRandom: return "random";
    case Mode::kEager: return "eager";
    case Mode::kLazy: return "lazy";
  }
  return "?";
}

std::optional<Mode> parse_mode(std::string_view text) {
  for (const Mode mode : kModes) {
    if (text == name(mode)) return mode;
  }
  return std::nullopt;
}

}  // namespace pagoda::emulator
