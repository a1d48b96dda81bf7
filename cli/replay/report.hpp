// --report DIR: replay.json and three pictures, drawn by gnuplot.
#pragma once

#include <string>

#include "cli/replay/summary.hpp"

namespace pagoda::replay {

// Called before the run: fails if the directory can't be written or gnuplot is missing.
[[nodiscard]] Status prepare_report(const std::string& directory);

// Writes replay.json, and latency, timeline and roofline as a .png with its gnuplot script each.
// Pictures without data are skipped.
[[nodiscard]] Status write_report(const std::string& directory, const SessionConfig& config,
                                  const SummaryContext& context, const Metrics& metrics);

}  // namespace pagoda::replay
