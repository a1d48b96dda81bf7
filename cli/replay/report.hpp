// --report DIR: replay.json and three pictures, drawn by gnuplot.
#pragma once

#include <string>

#include "cli/replay/summary.hpp"

namespace pagoda::replay {

// Before a long run: fails where the directory can't be written or gnuplot is missing.
[[nodiscard]] Status prepare_report(const std::string& directory);

// replay.json; latency, timeline and roofline, each a .png and the gnuplot script that drew it. A
// picture that would have no data is left out.
[[nodiscard]] Status write_report(const std::string& directory, const SessionConfig& config,
                                  const SummaryContext& context, const Metrics& metrics);

}  // namespace pagoda::replay
