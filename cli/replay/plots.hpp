// The pictures of a report, one function each. A picture without data is not drawn.
#pragma once

#include <string>
#include <string_view>

#include "cli/replay/metrics.hpp"
#include "cli/replay/summary.hpp"

namespace pagoda::replay {

// How the requests' latencies are distributed.
[[nodiscard]] Status plot_latency(const std::string& directory, std::string_view title,
                                  std::string_view clock, const Metrics& metrics);
// Throughput, occupancy and queue over time.
[[nodiscard]] Status plot_timeline(const std::string& directory, std::string_view title,
                                   std::string_view clock, const Metrics& metrics);
// Every step's measured rate against the machine's ceilings.
[[nodiscard]] Status plot_roofline(const std::string& directory, std::string_view title,
                                   const SummaryContext& context, const Metrics& metrics);

}  // namespace pagoda::replay
