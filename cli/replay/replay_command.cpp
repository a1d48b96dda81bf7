// Reads the trace, runs the session, prints the results.
#include "cli/replay/replay_command.hpp"

#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <memory>

#include <CLI/CLI.hpp>

#include "bench/ceilings/ceilings.hpp"
#include "cli/progress.hpp"
#include "cli/replay/replay_flags.hpp"
#include "cli/replay/report.hpp"
#include "cli/replay/session.hpp"
#include "cli/replay/summary.hpp"
#include "cli/replay/trace.hpp"
#include "cli/terminal.hpp"
#include "pagoda/backend.hpp"
#include "testing/mirror/host_space.hpp"

namespace pagoda::cli {

namespace {

using replay::Metrics;
using replay::SessionConfig;

constexpr int kExitInterrupted = 130;  // 128 + SIGINT, as shells expect
constexpr size_t kComplaintsToShow = 20;

volatile std::sig_atomic_t was_interrupted = 0;

// The first Ctrl-C ends the session after the current step; the second one kills the process.
class InterruptGuard {
 public:
  InterruptGuard() {
    was_interrupted = 0;
    struct sigaction action {};
    action.sa_handler = [](int) { was_interrupted = 1; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &before_);
  }
  ~InterruptGuard() { sigaction(SIGINT, &before_, nullptr); }
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction before_ {};
};

void require(const Status& status) {
  if (!status) fail(status.message());
}

replay::Trace read_trace_file(const replay::ReplayFlags& flags) {
  std::error_code error;
  std::ifstream file(flags.trace, std::ios::binary);
  if (!file || std::filesystem::is_directory(flags.trace, error)) {
    fail(fmt::format("trace: can't read '{}'", flags.trace));
  }
  replay::Trace trace = replay::read_trace(file, flags.requests, flags.is_strict);
  for (size_t i = 0; i < trace.malformed.size(); ++i) {
    const replay::MalformedLine& bad = trace.malformed[i];
    const std::string text = fmt::format("{}:{}: {}", flags.trace, bad.line, bad.reason);
    if (flags.is_strict) fail(text);
    if (i == kComplaintsToShow) {
      warn(fmt::format("{} more malformed lines", trace.malformed.size() - i));
      break;
    }
    warn(text + "; skipped");
  }
  if (trace.requests.empty()) fail(fmt::format("trace: no request in '{}'", flags.trace));
  return trace;
}

void measure_roofline(replay::SummaryContext& context, DType dtype) {
  const bench::Ceilings ceilings = bench::measure_ceilings(context.threads);
  const char* arithmetic = dtype == DType::kBF16 ? "bf16" : "fp32";
  context.ceiling_flops_per_s = ceilings.flops(arithmetic, context.isa).all_threads;
  context.ceiling_bytes_per_s = ceilings.dram().all_threads;
}

Status run_session(replay::Session& session) {
  constexpr int64_t kWhole = 100;
  Progress bar("replay %", kWhole);
  const auto start = std::chrono::steady_clock::now();
  const auto on_progress = [&](const replay::SessionProgress& p) {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    bar.update(
        static_cast<int64_t>(p.done_share * kWhole),
        fmt::format("{} requests, {:.0f} tokens/s, cache {:.0f} %", p.completed,
                    static_cast<double>(p.processed_tokens) / elapsed.count(), 100 * p.held_share));
  };
  const InterruptGuard guard;
  return session.run(on_progress, [] { return was_interrupted != 0; });
}

int exit_code(const Status& status, const Metrics& metrics) {
  if (!status) return kExitFailed;
  if (metrics.mismatches > 0) return kExitFailed;
  return metrics.was_interrupted ? kExitInterrupted : 0;
}

void run_replay(const replay::ReplayFlags& flags) {
  const EngineSetup engine(flags.engine);
  const Result<SessionConfig> config = replay::make_session_config(flags, engine.options());
  require(config.status());
  const replay::Trace trace = read_trace_file(flags);
  if (!flags.report.empty()) require(replay::prepare_report(flags.report));
  replay::SummaryContext context{
      .trace_name = std::filesystem::path(flags.trace).filename().string(),
      .threads = engine.threads(),
      .device = {},
      .isa = cpu_isa_level(),
      .malformed_lines = std::ssize(trace.malformed)};
  core::MemorySpace& space = mirror::space_of(flags.engine.target.backend);
  if (!space.is_host()) {
    context.device = space.facts().name;  // a GPU's roofline is not measured here
  } else if (!flags.skips_ceilings) {
    measure_roofline(context, config->stack.dtype);
  }
  if (!flags.is_json) {
    print_header(*config, context, trace);
    std::fflush(stdout);
  }

  replay::Session session(*config, trace);
  const Status status = run_session(session);
  const Metrics& metrics = session.metrics();
  for (const std::string& message : metrics.rejected) warn(message);
  if (!status) fail(status.message(), kExitFailed);
  if (flags.is_json) {
    fmt::print("{}\n", summary_json(*config, context, metrics).dump(2));
  }
  if (!flags.report.empty()) {
    require(write_report(flags.report, *config, context, metrics));
    if (!flags.is_json) fmt::print("\nreport: {}\n", flags.report);
  }
  if (!flags.is_json) print_summary(*config, context, metrics);
  finish_with(exit_code(status, metrics));
}

}  // namespace

void add_replay_command(CLI::App& app) {
  auto flags = std::make_shared<replay::ReplayFlags>();
  CLI::App* command = app.add_subcommand(
      "replay", "Serve a request trace through a paged cache with continuous batching");
  replay::add_replay_flags(*command, *flags);
  command->callback([flags] { run_replay(*flags); });
}

}  // namespace pagoda::cli
