// Makes the reports of a run: adds the kernel, the acting thread, mode and seed to what a part of
// the machine has found, and ends the run after a finding that it cannot continue from.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "emulator/machine/options.hpp"
#include "emulator/report/findings.hpp"
#include "emulator/report/place.hpp"

namespace pagoda::emulator {

class Scheduler;
struct Thread;

// Ends a run from outside of a thread: thrown by Reporter::fail, caught by Machine::run.
struct RunOver {};

class Reporter {
 public:
  Reporter(std::string kernel, const Options& options, Scheduler& scheduler);

  // The finding is of `who`; nullptr: of the thread that acts.
  void report(ReportKind kind, const char* primitive, const Where& where, std::string message,
              const Thread* who = nullptr);
  // A race: `earlier` is the call of the other access.
  void report_race(const char* primitive, const Where& where, std::string message,
                   const Where& earlier);
  // Reports and ends the run. Inside a thread it never returns: the thread stays suspended.
  [[noreturn]] void fail(ReportKind kind, const char* primitive, const Where& where,
                         std::string message);

  [[nodiscard]] std::vector<Report> take() { return findings_.take(); }

  // While it lives, `who` acts, not the executing thread: the issuer of an asynchronous operation,
  // or the lane that gave the address of a collective access.
  class OnBehalfOf {
   public:
    OnBehalfOf(Reporter& reporter, const Thread* who)
        : reporter_(reporter), outer_(std::exchange(reporter.acting_for_, who)) {}
    ~OnBehalfOf() { reporter_.acting_for_ = outer_; }
    OnBehalfOf(const OnBehalfOf&) = delete;
    OnBehalfOf& operator=(const OnBehalfOf&) = delete;

   private:
    Reporter& reporter_;
    const Thread* outer_;
  };

 private:
  [[nodiscard]] Report make_report(ReportKind kind, const char* primitive, const Where& where,
                                   std::string message, const Thread* who) const;
  void add(Report report);

  std::string kernel_;
  Mode mode_;
  uint64_t seed_;
  Scheduler& scheduler_;
  const Thread* acting_for_ = nullptr;
  Findings findings_;
};

}  // namespace pagoda::emulator
