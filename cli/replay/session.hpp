// One replay from the first arrival to the last token: scheduler, engine, checks and clock.
#pragma once

#include <atomic>
#include <functional>

#include "cli/replay/layer_stack.hpp"
#include "cli/replay/metrics.hpp"
#include "cli/replay/replay_clock.hpp"
#include "cli/replay/row_sampler.hpp"
#include "cli/replay/scheduler.hpp"
#include "cli/replay/trace.hpp"

namespace pagoda::replay {

struct SessionConfig {
  StackConfig stack;
  SchedulerLimits limits;
  ClockKind clock = ClockKind::kVirtual;
  ModelledDevice device;
  double speedup = 1;     // arrivals come this many times as fast
  double check_rate = 1;  // see RowSampler
  uint64_t seed = 1;
};

// For the progress bar: called after every step.
struct SessionProgress {
  double done_share = 0;  // of the attention work
  int64_t completed = 0;
  int64_t processed_tokens = 0;  // prompts and outputs, reused ones included
  double held_share = 0;
};

class Session {
 public:
  using OnProgress = std::function<void(const SessionProgress&)>;
  using IsCancelled = std::function<bool()>;

  Session(const SessionConfig& config, const Trace& trace);

  // Runs to the end, or until `is_cancelled` returns true between two steps. Fails if a call of the
  // library fails; metrics() is then complete up to that step.
  [[nodiscard]] Status run(const OnProgress& on_progress, const IsCancelled& is_cancelled);

  [[nodiscard]] const Metrics& metrics() const { return metrics_; }

 private:
  void submit_arrivals();
  [[nodiscard]] Status run_step(const Step& step);
  void check_rows(int32_t layer, const LayerOutput& output, const std::vector<SampledRow>& rows);
  void record_step(const Step& step, const StepCost& cost, double start_s);
  void record_outcome(const StepOutcome& outcome);
  void finish();
  [[nodiscard]] SessionProgress progress() const;
  void track_work(const Step& step);

  SessionConfig config_;
  const Trace& trace_;
  Synthesis synthesis_;
  BlockManager blocks_;
  Scheduler scheduler_;
  ReplayClock clock_;
  RowSampler sampler_;
  std::unique_ptr<LayerStack> stack_;
  std::vector<RequestContent> contents_;  // of submitted requests
  std::vector<int64_t> reached_;          // by request: positions that were once computed
  size_t next_arrival_ = 0;
  double total_work_ = 0, done_work_ = 0;
  int64_t completed_ = 0;
  Metrics metrics_;
};

}  // namespace pagoda::replay
