// Writes the report's files.
#include "cli/replay/report.hpp"

#include <filesystem>
#include <fmt/format.h>
#include <fstream>

#include "bench/machine.hpp"
#include "cli/json_io.hpp"
#include "cli/replay/gnuplot.hpp"
#include "cli/replay/plots.hpp"
#include "cli/replay/timeline.hpp"

namespace pagoda::replay {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kTimelineBins = 200;

Json requests_json(const Metrics& metrics) {
  Json list = Json::array();
  for (const RequestMetrics& r : metrics.requests) {
    Json item = {{"arrival_s", r.arrival_s},
                 {"prompt_tokens", r.prompt_tokens},
                 {"output_tokens", r.output_tokens}};
    if (r.first_token_s >= 0) item["ttft_s"] = r.ttft_s();
    if (r.is_finished()) item["finish_s"] = r.finish_s;
    if (r.is_finished() && r.output_tokens > 1) item["tpot_s"] = r.tpot_s();
    list.push_back(std::move(item));
  }
  return list;
}

Json timeline_json(const Metrics& metrics) {
  Json list = Json::array();
  for (const TimelineBin& bin : make_timeline(metrics.steps, kTimelineBins)) {
    list.push_back({{"start_s", bin.start_s},
                    {"prefill_tokens_per_s", bin.prefill_tokens_per_s},
                    {"decode_tokens_per_s", bin.decode_tokens_per_s},
                    {"running", bin.running},
                    {"waiting", bin.waiting},
                    {"held_share", bin.held_share},
                    {"cached_share", bin.cached_share}});
  }
  return list;
}

}  // namespace

Status prepare_report(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) return Status::invalid("report", directory, "can't be created: " + error.message());
  if (!std::ofstream(directory + "/replay.json")) {
    return Status::invalid("report", directory, "is not a directory that can be written to");
  }
  return find_gnuplot();
}

Status write_report(const std::string& directory, const SessionConfig& config,
                    const SummaryContext& context, const Metrics& metrics) {
  Json json = summary_json(config, context, metrics);
  json["machine"] = cli::to_json(bench::describe_machine());
  json["requests_served"] = requests_json(metrics);
  json["timeline"] = timeline_json(metrics);
  std::ofstream file(directory + "/replay.json");
  file << json.dump(1) << '\n';
  if (!file.flush()) return {StatusCode::kInternal, "report", "could not write replay.json"};

  const std::string title = fmt::format("{}, {}", context.trace_name, config.stack.model.name);
  const std::string clock = describe_clock(config);
  if (Status s = plot_latency(directory, title, clock, metrics); !s) return s;
  if (Status s = plot_timeline(directory, title, clock, metrics); !s) return s;
  return plot_roofline(directory, title, context, metrics);
}

}  // namespace pagoda::replay
