// gnuplot commands and data. The colours of Okabe and Ito are distinguishable with colour
// blindness.
#include "cli/replay/plots.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "cli/replay/gnuplot.hpp"
#include "cli/replay/timeline.hpp"

namespace pagoda::replay {

namespace {

constexpr int64_t kTimelineBins = 200;
constexpr size_t kMaxPoints = 6000;
constexpr const char* kBlue = "#0072B2";
constexpr const char* kOrange = "#E69F00";
constexpr const char* kGreen = "#009E73";
constexpr const char* kRed = "#D55E00";

std::string three_digits(double value) {
  return value < 1000 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}

// One panel: the share of requests within a latency, with the percentiles written beside it.
void plot_distribution(Gnuplot& plot, const char* block, std::vector<double> values,
                       const char* title, const char* unit, double per_second) {
  const Percentiles p = percentiles(values);
  std::sort(values.begin(), values.end());
  plot.data(block, values.size(), [&](size_t i) {
    return fmt::format("{:.9g} {:.6g}", values[i] * per_second,
                       100 * static_cast<double>(i + 1) / static_cast<double>(values.size()));
  });
  const double low = values.front() * per_second, high = values.back() * per_second;
  const bool is_log = low > 0 && high / low > 20;
  plot.command(is_log ? "set logscale x" : "unset logscale x");
  plot.command(fmt::format("set title {}", literal(title)));
  plot.command(fmt::format("set xlabel {}", literal(unit)));
  plot.command("set ylabel 'requests within (%)'\nset yrange [0:104]\nset ytics 0,10,100");
  plot.command(is_log ? fmt::format("set xrange [{:g}:{:g}]", low / 1.3, high * 1.6)
                      : fmt::format("set xrange [0:{:g}]", high > 0 ? high * 1.12 : 1.0));
  plot.command("unset label\nunset arrow\nset key off");
  int tag = 1;
  for (const auto& [rank, value] : {std::pair{50, p.p50}, {90, p.p90}, {99, p.p99}}) {
    plot.command(fmt::format(
        "set label {} at {:.9g},{} {} right offset -0.8,0.5 "
        "point pt 7 ps 0.9 lc rgb '{}'",
        tag++, value * per_second, rank,
        literal(fmt::format("p{} = {}", rank, three_digits(value * per_second))), kRed));
  }
  plot.command(fmt::format("plot ${} using 1:2 with steps lw 2 lc rgb '{}'", block, kBlue));
}

size_t every(size_t count) { return std::max<size_t>(1, (count + kMaxPoints - 1) / kMaxPoints); }

struct RooflineRange {
  double low_x, high_x, low_y, high_y;
};

RooflineRange roofline_range(const SummaryContext& context, std::span<const StepSample> steps) {
  RooflineRange r{1e300, 0, 1e300, context.ceiling_flops_per_s * 1e-9};
  for (const StepSample& step : steps) {
    const double rate = step.flops / static_cast<double>(step.attention_seconds) * 1e-9;
    r.low_x = std::min(r.low_x, step.flops / step.bytes);
    r.high_x = std::max(r.high_x, step.flops / step.bytes);
    r.low_y = std::min(r.low_y, rate);
    r.high_y = std::max(r.high_y, rate);
  }
  const double ridge = context.ceiling_flops_per_s / std::max(context.ceiling_bytes_per_s, 1.0);
  r.high_x = std::max(r.high_x, ridge);
  return {r.low_x / 1.5, r.high_x * 2, r.low_y / 1.5, r.high_y * 2};
}

void set_ceilings(Gnuplot& plot, const SummaryContext& context) {
  if (context.ceiling_flops_per_s <= 0 || context.ceiling_bytes_per_s <= 0) return;
  plot.command(fmt::format("roof(x) = x * {0:.9g} < {1:.9g} ? x * {0:.9g} : {1:.9g}",
                           context.ceiling_bytes_per_s * 1e-9, context.ceiling_flops_per_s * 1e-9));
}

}  // namespace

Status plot_latency(const std::string& directory, std::string_view title, std::string_view clock,
                    const Metrics& metrics) {
  std::vector<double> ttft, tpot;
  for (const RequestMetrics& r : metrics.requests) {
    if (r.first_token_s >= 0) ttft.push_back(r.ttft_s());
    if (r.is_finished() && r.output_tokens > 1) tpot.push_back(r.tpot_s());
  }
  if (ttft.empty()) return {};
  Gnuplot plot(directory, "latency", 1200, 520);
  plot.command(
      fmt::format("set multiplot layout 1,{} title {} noenhanced margins 0.07,0.97,0.14,0.84 "
                  "spacing 0.09",
                  tpot.empty() ? 1 : 2, literal(fmt::format("{}: latency, {}", title, clock))));
  plot_distribution(plot, "ttft", std::move(ttft), "Time to first token", "seconds from arrival",
                    1);
  if (!tpot.empty()) {
    plot_distribution(plot, "tpot", std::move(tpot), "Time per output token",
                      "milliseconds per token after the first", 1e3);
  }
  plot.command("unset multiplot");
  return plot.finish();
}

Status plot_timeline(const std::string& directory, std::string_view title, std::string_view clock,
                     const Metrics& metrics) {
  const std::vector<TimelineBin> bins = make_timeline(metrics.steps, kTimelineBins);
  if (bins.empty()) return {};
  Gnuplot plot(directory, "timeline", 1200, 960);
  // Points are in the middle of their bins.
  const double half = bins.size() > 1 ? bins[1].start_s / 2 : 0;
  plot.data("bins", bins.size(), [&](size_t i) {
    const TimelineBin& b = bins[i];
    return fmt::format("{:.9g} {:.6g} {:.6g} {:.6g} {:.6g} {:.6g} {:.6g}", b.start_s + half,
                       b.prefill_tokens_per_s, b.decode_tokens_per_s, 100 * b.held_share,
                       100 * (b.held_share + b.cached_share), b.running, b.waiting);
  });
  plot.command(
      fmt::format("set multiplot layout 3,1 title {} noenhanced margins 0.08,0.97,0.07,0.94 "
                  "spacing 0.07",
                  literal(fmt::format("{}: over time, {}", title, clock))));
  plot.command(fmt::format("set xrange [0:{:.9g}]\nset key at graph 1,1.14 right horizontal",
                           metrics.steps.back().end_s));
  plot.command("set format y '%.0s%c'\nset ylabel 'tokens per second'");
  // A logarithmic axis: prompts go through in thousands, outputs in tens.
  plot.command("set logscale y\nset yrange [1:*]");
  plot.command(fmt::format(
      "plot $bins using 1:($2>0?$2:NaN) with points pt 7 ps 0.6 lc rgb '{}' title 'prompts', "
      "$bins using 1:($3>0?$3:NaN) with points pt 7 ps 0.6 lc rgb '{}' title 'outputs'",
      kBlue, kOrange));
  plot.command("unset logscale y\nset format y '%g'\nset yrange [0:105]");
  plot.command("set ylabel 'share of the cache (%)'");
  plot.command(fmt::format(
      "plot $bins using 1:5 with filledcurves x1 fc rgb '#d9d9d9' title 'kept for reuse', "
      "$bins using 1:4 with filledcurves x1 fc rgb '{}' title 'in use'",
      kGreen));
  plot.command("set yrange [0:*]\nset ylabel 'requests'\nset xlabel 'seconds'");
  plot.command(
      fmt::format("plot $bins using 1:6 with lines lw 2 lc rgb '{}' title 'running', "
                  "$bins using 1:7 with lines lw 2 lc rgb '{}' title 'waiting'",
                  kBlue, kRed));
  plot.command("unset multiplot");
  return plot.finish();
}

Status plot_roofline(const std::string& directory, std::string_view title,
                     const SummaryContext& context, const Metrics& metrics) {
  std::vector<StepSample> steps;
  for (const StepSample& step : metrics.steps) {
    if (step.attention_seconds > 0 && step.flops > 0 && step.bytes > 0) steps.push_back(step);
  }
  if (steps.empty()) return {};
  Gnuplot plot(directory, "roofline", 1000, 700);
  const auto rows = [&](const char* block, const auto& belongs) {
    std::vector<const StepSample*> chosen;
    for (const StepSample& step : steps) {
      if (belongs(step)) chosen.push_back(&step);
    }
    const size_t stride = every(chosen.size());
    plot.data(block, (chosen.size() + stride - 1) / stride, [&](size_t i) {
      const StepSample& s = *chosen[i * stride];
      return fmt::format("{:.6g} {:.6g}", s.flops / s.bytes,
                         s.flops / static_cast<double>(s.attention_seconds) * 1e-9);
    });
    return !chosen.empty();
  };
  const bool has_decode = rows("decode", [](const StepSample& s) { return s.prefill_tokens == 0; });
  const bool has_prefill =
      rows("prefill", [](const StepSample& s) { return s.decode_tokens == 0; });
  const bool has_mixed = rows(
      "mixed", [](const StepSample& s) { return s.prefill_tokens > 0 && s.decode_tokens > 0; });
  const RooflineRange r = roofline_range(context, steps);
  plot.command(fmt::format(
      "set title {} noenhanced",
      literal(fmt::format("{}: attention of every step, {} threads", title, context.threads))));
  plot.command(
      "set logscale xy\nset xlabel 'FLOP per byte of Q, K, V and O'\nset ylabel 'GFLOP/s'");
  plot.command("set key bottom right");
  plot.command(fmt::format("set xrange [{:g}:{:g}]\nset yrange [{:g}:{:g}]", r.low_x, r.high_x,
                           r.low_y, r.high_y));
  set_ceilings(plot, context);
  std::string curves;
  const auto add = [&](bool is_there, const std::string& curve) {
    if (is_there) curves += (curves.empty() ? "" : ", ") + curve;
  };
  const auto points = [](const char* block, const char* color, const char* name) {
    return fmt::format("${} using 1:2 with points pt 7 ps 0.7 lc rgb '{}' title '{}'", block, color,
                       name);
  };
  add(has_prefill, points("prefill", kBlue, "prompt chunks only"));
  add(has_mixed, points("mixed", kGreen, "chunks and decodes mixed"));
  add(has_decode, points("decode", kOrange, "decodes only"));
  add(context.ceiling_flops_per_s > 0 && context.ceiling_bytes_per_s > 0,
      fmt::format(
          "roof(x) with lines lw 2 lc rgb '{}' title '{}'", kRed,
          fmt::format("measured ceilings: {:.0f} GFLOP/s, {:.1f} GB/s of DRAM",
                      context.ceiling_flops_per_s * 1e-9, context.ceiling_bytes_per_s * 1e-9)));
  plot.command("set samples 1000\nplot " + curves);
  return plot.finish();
}

}  // namespace pagoda::replay
