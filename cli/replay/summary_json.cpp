// The JSON summary. Keys name their unit; latencies follow the replay's clock.
#include <fmt/format.h>

#include "cli/replay/summary.hpp"

namespace pagoda::replay {

namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Percentiles& p) {
  return {{"p50", p.p50}, {"p90", p.p90}, {"p99", p.p99}, {"mean", p.mean}, {"count", p.count}};
}

Json model_json(const StackConfig& stack) {
  const ModelShape& model = stack.model;
  return {{"name", model.name},
          {"q_heads", model.num_q_heads},
          {"kv_heads", model.num_kv_heads},
          {"head_dim", model.head_dim},
          {"layers", model.num_layers},
          {"layers_run", stack.num_layers},
          {"window", model.window},
          {"sinks", model.has_sinks},
          {"softcap", model.softcap},
          {"dtype", name(stack.dtype)},
          {"kv_dtype", name(stack.kv_dtype)}};
}

Json cache_json(const SessionConfig& config, const Metrics& metrics) {
  const StackConfig& stack = config.stack;
  return {{"bytes", stack.num_pages * stack.page_size * stack.token_bytes()},
          {"pages", stack.num_pages},
          {"page_size", stack.page_size},
          {"mean_occupancy", metrics.mean_occupancy()},
          {"peak_occupancy", metrics.peak_occupancy()}};
}

Json clock_json(const SessionConfig& config, const Metrics& metrics) {
  const auto rate = [&](int64_t count) {
    return metrics.clock_seconds > 0 ? static_cast<double>(count) / metrics.clock_seconds : 0.0;
  };
  constexpr const char* kNames[] = {"virtual", "measured", "wall"};
  return {{"kind", kNames[static_cast<size_t>(config.clock)]},
          {"description", describe_clock(config)},
          {"seconds", metrics.clock_seconds},
          {"requests_per_s", rate(metrics.completed())},
          {"tokens_per_s", rate(metrics.processed_tokens)}};
}

Json checks_json(const Metrics& metrics) {
  Json json;
  for (int phase = 0; phase < kNumPhases; ++phase) {
    json[name(static_cast<Phase>(phase))] = metrics.checked_rows[static_cast<size_t>(phase)];
  }
  return json;
}

Json mismatches_json(const Metrics& metrics) {
  Json list = Json::array();
  for (const Mismatch& bad : metrics.first_mismatches) {
    list.push_back({{"request", bad.request},
                    {"position", bad.position},
                    {"layer", bad.layer},
                    {"q_head", bad.q_head},
                    {"phase", bad.phase},
                    {"what", bad.what}});
  }
  return list;
}

// 0 stands for what was not measured.
Json known(double value) { return value > 0 ? Json(value) : Json(nullptr); }

void add_speed(Json& json, const SummaryContext& context, const Metrics& metrics) {
  const StepCost& cost = metrics.cost;
  const double serving = cost.attention_seconds + cost.append_seconds;
  const auto per = [](double amount, double seconds) { return seconds > 0 ? amount / seconds : 0; };
  json["requests_per_s"] = per(static_cast<double>(metrics.completed()), serving);
  json["tokens_per_s"] = per(static_cast<double>(metrics.processed_tokens), serving);
  json["flops"] = cost.flops;
  json["gflops_per_s"] = per(cost.flops * 1e-9, cost.attention_seconds);
  json["gb_per_s"] = per(cost.bytes * 1e-9, cost.attention_seconds);
  const double share =
      metrics.roofline_share(context.ceiling_flops_per_s, context.ceiling_bytes_per_s);
  json["roofline_share"] = known(share);
  json["ceilings"] = {{"gflops_per_s", known(context.ceiling_flops_per_s * 1e-9)},
                      {"gb_per_s", known(context.ceiling_bytes_per_s * 1e-9)}};
  json["attention_seconds"] = cost.attention_seconds;
  json["append_seconds"] = cost.append_seconds;
  json["synthesis_seconds"] = cost.synthesis_seconds;
  json["check_seconds"] = cost.check_seconds;
  json["wall_seconds"] = metrics.wall_seconds;
}

}  // namespace

Json summary_json(const SessionConfig& config, const SummaryContext& context,
                  const Metrics& metrics) {
  Json json;
  json["trace"] = context.trace_name;
  json["interrupted"] = metrics.was_interrupted;
  json["mismatches"] = metrics.mismatches;
  json["checked_rows"] = metrics.total_checked_rows();
  json["checked_rows_by_phase"] = checks_json(metrics);
  json["first_mismatches"] = mismatches_json(metrics);
  json["checksum"] = fmt::format("{:016x}", metrics.checksum);
  json["requests"] = std::ssize(metrics.requests);
  json["completed"] = metrics.completed();
  json["rejected"] = metrics.rejected;
  json["malformed_lines"] = context.malformed_lines;
  json["tokens"] = {{"prompt", metrics.prompt_tokens},
                    {"reused", metrics.reused_tokens},
                    {"output", metrics.output_tokens},
                    {"computed", metrics.computed_tokens}};
  json["steps"] = std::ssize(metrics.steps);
  json["clock"] = clock_json(config, metrics);
  json["ttft_seconds"] = to_json(metrics.ttft());
  json["tpot_seconds"] = to_json(metrics.tpot());
  json["cache_hit_rate"] = metrics.cache_hit_rate();
  json["occupancy"] = metrics.mean_occupancy();
  json["preemptions"] = metrics.preemptions;
  json["evictions"] = metrics.evictions;
  json["cache"] = cache_json(config, metrics);
  add_speed(json, context, metrics);
  json["kernel"] = metrics.kernel;
  json["isa"] = context.isa;
  json["threads"] = context.threads;
  json["backend"] = config.stack.options.backend;
  json["device"] = context.device.empty() ? Json(nullptr) : Json(context.device);
  json["model"] = model_json(config.stack);
  json["seed"] = config.seed;
  return json;
}

}  // namespace pagoda::replay
