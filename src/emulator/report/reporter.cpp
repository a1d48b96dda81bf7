// Reports of a run.
#include "emulator/report/reporter.hpp"

#include <algorithm>
#include <utility>

#include "emulator/machine/hierarchy.hpp"
#include "emulator/machine/scheduler.hpp"

namespace pagoda::emulator {

void Findings::add(Report report) {
  const bool is_known = std::any_of(reports_.begin(), reports_.end(), [&](const Report& earlier) {
    return earlier.kind == report.kind && earlier.line == report.line &&
           earlier.file == report.file && earlier.primitive == report.primitive;
  });
  if (!is_known) reports_.push_back(std::move(report));
}

Reporter::Reporter(std::string kernel, const Options& options, Scheduler& scheduler)
    : kernel_(std::move(kernel)),
      mode_(options.mode),
      seed_(options.seed),
      scheduler_(scheduler),
      findings_(options.max_reports) {}

Report Reporter::make_report(ReportKind kind, const char* primitive, const Where& where,
                             std::string message, const Thread* who) const {
  if (who == nullptr) who = acting_for_ != nullptr ? acting_for_ : scheduler_.running();
  return {.kind = kind,
          .kernel = kernel_,
          .who = who != nullptr ? describe(*who) : "the launch",
          .primitive = primitive,
          .file = file_of(where),
          .line = where.line(),
          .message = std::move(message),
          .other_file = {},
          .mode = mode_,
          .seed = seed_};
}

void Reporter::add(Report report) {
  findings_.add(std::move(report));
  if (findings_.is_full()) scheduler_.end_run();
}

void Reporter::report(ReportKind kind, const char* primitive, const Where& where,
                      std::string message, const Thread* who) {
  add(make_report(kind, primitive, where, std::move(message), who));
}

void Reporter::report_race(const char* primitive, const Where& where, std::string message,
                           const Where& earlier) {
  Report race = make_report(ReportKind::kRace, primitive, where, std::move(message), nullptr);
  race.other_file = file_of(earlier);
  race.other_line = earlier.line();
  add(std::move(race));
}

void Reporter::fail(ReportKind kind, const char* primitive, const Where& where,
                    std::string message) {
  report(kind, primitive, where, std::move(message));
  scheduler_.end_run();
  if (scheduler_.running() == nullptr) throw RunOver{};
  for (;;) Fiber::suspend();
}

}  // namespace pagoda::emulator
