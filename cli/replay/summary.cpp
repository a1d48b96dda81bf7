// The table for people. Times of serving are measured; latencies follow the replay's clock.
#include "cli/replay/summary.hpp"

#include <fmt/format.h>

#include "cli/terminal.hpp"

namespace pagoda::replay {

namespace {

using cli::format_bytes;
using cli::format_count;
using cli::format_seconds;
using cli::paint;
using cli::Style;

void line(const char* label, const std::string& text) {
  fmt::print("  {}{}\n", paint(fmt::format("{:<15}", label), Style::kDim), text);
}

std::string latency(const Percentiles& p) {
  if (p.count == 0) return "none";
  return fmt::format("p50 {:>9}   p90 {:>9}   p99 {:>9}", format_seconds(p.p50),
                     format_seconds(p.p90), format_seconds(p.p99));
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

void print_work(const Metrics& m) {
  line("requests",
       fmt::format("{} completed of {}{}", format_count(m.completed()),
                   format_count(std::ssize(m.requests)),
                   m.rejected.empty() ? "" : fmt::format(", {} rejected", m.rejected.size())));
  line("tokens", fmt::format("{} of prompts ({} reused), {} of output; {} computed in {} steps",
                             format_count(m.prompt_tokens), format_count(m.reused_tokens),
                             format_count(m.output_tokens), format_count(m.computed_tokens),
                             format_count(std::ssize(m.steps))));
}

void print_cache(const Metrics& m) {
  line("cache", fmt::format("hit rate {}, occupancy {} on average and {} at most",
                            percent(m.cache_hit_rate()), percent(m.mean_occupancy()),
                            percent(m.peak_occupancy())));
  line("", fmt::format("{} evictions, {} preemptions", format_count(m.evictions),
                       format_count(m.preemptions)));
}

void print_speed(const SummaryContext& context, const Metrics& m) {
  const double seconds = m.cost.attention_seconds;
  if (seconds <= 0) return;
  const double serving = seconds + m.cost.append_seconds;
  line("serving time",
       fmt::format(
           "{} attention + {} append, on {} with {}", format_seconds(seconds),
           format_seconds(m.cost.append_seconds),
           context.device.empty() ? fmt::format("{} threads", context.threads) : context.device,
           m.kernel));
  line("throughput",
       fmt::format(
           "{:.2f} requests/s, {} tokens/s of serving time",
           static_cast<double>(m.completed()) / serving,
           format_count(static_cast<int64_t>(static_cast<double>(m.processed_tokens) / serving))));
  const double share = m.roofline_share(context.ceiling_flops_per_s, context.ceiling_bytes_per_s);
  line("attention",
       fmt::format("{:.1f} GFLOP/s, {:.1f} GB/s{}", m.cost.flops / seconds * 1e-9,
                   m.cost.bytes / seconds * 1e-9,
                   share > 0 ? fmt::format(", {} of the roofline", percent(share)) : ""));
  line("besides",
       fmt::format("{} making inputs, {} checking; {} in all",
                   format_seconds(m.cost.synthesis_seconds), format_seconds(m.cost.check_seconds),
                   format_seconds(m.wall_seconds)));
}

void print_checks(const Metrics& m) {
  std::string by_phase;
  for (int phase = 0; phase < kNumPhases; ++phase) {
    by_phase += fmt::format("{}{} {}", by_phase.empty() ? "" : ", ",
                            format_count(m.checked_rows[static_cast<size_t>(phase)]),
                            name(static_cast<Phase>(phase)));
  }
  line("checked rows", fmt::format("{} ({})", format_count(m.total_checked_rows()), by_phase));
  line("checksum", fmt::format("{:016x}", m.checksum));
  for (const Mismatch& bad : m.first_mismatches) {
    fmt::print("  {} request {} position {} layer {} head {} ({}): {}\n",
               paint("mismatch", Style::kRed), bad.request, bad.position, bad.layer, bad.q_head,
               bad.phase, bad.what);
  }
}

}  // namespace

std::string describe_clock(const SessionConfig& config) {
  switch (config.clock) {
    case ClockKind::kVirtual:
      return fmt::format("virtual clock: a device of {:g} GFLOP/s and {:g} GB/s",
                         config.device.flops_per_s * 1e-9, config.device.bytes_per_s * 1e-9);
    case ClockKind::kMeasured: return "measured clock: the attention and append time of this run";
    case ClockKind::kWall: return "wall clock: making inputs and checking included";
  }
  return "?";
}

void print_header(const SessionConfig& config, const SummaryContext& context, const Trace& trace) {
  const StackConfig& stack = config.stack;
  const ModelShape& model = stack.model;
  fmt::print("{}  {} requests of {}\n", paint("pagoda replay", Style::kBold),
             format_count(std::ssize(trace.requests)), context.trace_name);
  line("model",
       fmt::format("{}: {} query heads, {} key heads, head dim {}{}{}{}", model.name,
                   model.num_q_heads, model.num_kv_heads, model.head_dim,
                   model.window > 0 ? fmt::format(", window {} in even layers", model.window) : "",
                   model.has_sinks ? ", sinks" : "",
                   model.softcap > 0 ? fmt::format(", soft cap {:g}", model.softcap) : ""));
  line("layers", stack.num_layers == model.num_layers
                     ? fmt::format("all {}", model.num_layers)
                     : paint(fmt::format("only {} of the model's {}: times and rates are for these",
                                         stack.num_layers, model.num_layers),
                             Style::kYellow));
  line("cache", fmt::format("{} = {} pages of {} tokens, {} (queries {})",
                            format_bytes(static_cast<double>(stack.num_pages * stack.page_size *
                                                             stack.token_bytes())),
                            format_count(stack.num_pages), stack.page_size, name(stack.kv_dtype),
                            name(stack.dtype)));
  line("scheduler", fmt::format("{} tokens a step, at most {} running", config.limits.token_budget,
                                config.limits.max_running));
  line("latencies by", describe_clock(config));
}

void print_summary(const SessionConfig& config, const SummaryContext& context,
                   const Metrics& metrics) {
  fmt::print("\n{}\n", metrics.was_interrupted
                           ? paint("interrupted: a summary of what was done", Style::kYellow)
                           : paint("summary", Style::kBold));
  print_work(metrics);
  print_cache(metrics);
  print_speed(context, metrics);
  line("latencies by", describe_clock(config));
  line("  first token", latency(metrics.ttft()));
  line("  per token", latency(metrics.tpot()));
  print_checks(metrics);
  fmt::print("{}\n", paint(fmt::format("{} mismatches", format_count(metrics.mismatches)),
                           metrics.mismatches == 0 ? Style::kGreen : Style::kRed));
}

}  // namespace pagoda::replay
