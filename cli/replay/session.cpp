// The loop: arrivals, schedule, run, check, commit.
#include "cli/replay/session.hpp"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>

#include "core/element.hpp"

namespace pagoda::replay {

namespace {

constexpr size_t kMismatchesToShow = 10;

// Query-key pairs up to a position, the measure of progress.
double work_until(int64_t position) {
  return static_cast<double>(position) * static_cast<double>(position) / 2;
}

}  // namespace

Session::Session(const SessionConfig& config, const Trace& trace)
    : config_(config),
      trace_(trace),
      synthesis_(config.stack.model, config.stack.dtype, config.stack.kv_dtype, config.seed),
      blocks_(static_cast<int32_t>(config.stack.num_pages)),
      scheduler_(config.limits, blocks_),
      clock_(config.clock, config.device),
      sampler_(config.check_rate, config.stack.num_layers, config.stack.model.num_q_heads,
               config.seed) {
  const int64_t start_ms = trace.requests.empty() ? 0 : trace.requests.front().timestamp_ms;
  for (const TraceRequest& request : trace.requests) {
    const auto since_start = static_cast<double>(request.timestamp_ms - start_ms);
    metrics_.requests.push_back({.arrival_s = since_start / 1000 / config.speedup,
                                 .prompt_tokens = request.input_length,
                                 .output_tokens = request.output_length});
    total_work_ += work_until(request.input_length + request.output_length - 1);
  }
  reached_.resize(trace.requests.size());
}

Status Session::run(const OnProgress& on_progress, const IsCancelled& is_cancelled) {
  const auto start = std::chrono::steady_clock::now();
  Result<std::unique_ptr<LayerStack>> stack = LayerStack::create(config_.stack, synthesis_);
  if (!stack) return stack.status();
  stack_ = std::move(*stack);
  clock_ = ReplayClock(config_.clock, config_.device);  // allocation is no part of serving
  Status status;
  while (!is_cancelled()) {
    submit_arrivals();
    const Step step = scheduler_.schedule();
    if (!step.chunks.empty()) {
      status = run_step(step);
      if (!status) break;
      on_progress(progress());
    } else if (next_arrival_ < trace_.requests.size()) {
      clock_.advance_to(metrics_.requests[next_arrival_].arrival_s, is_cancelled);
    } else {
      break;
    }
  }
  metrics_.was_interrupted = is_cancelled();
  metrics_.wall_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  finish();
  return status;
}

void Session::submit_arrivals() {
  for (; next_arrival_ < trace_.requests.size(); ++next_arrival_) {
    if (metrics_.requests[next_arrival_].arrival_s > clock_.now()) return;
    const TraceRequest& request = trace_.requests[next_arrival_];
    contents_.emplace_back(request, static_cast<int64_t>(next_arrival_));
    Sequence sequence;
    sequence.prompt_tokens = request.input_length;
    sequence.output_tokens = request.output_length;
    sequence.page_keys = contents_.back().page_keys(config_.limits.page_size);
    if (Status s = scheduler_.submit(std::move(sequence)); !s) {
      metrics_.rejected.push_back(s.message());
      total_work_ -= work_until(request.input_length + request.output_length - 1);
    }
  }
}

Status Session::run_step(const Step& step) {
  const double start_s = clock_.now();
  const Batch batch = make_batch(step, scheduler_, contents_, config_.limits.page_size);
  const std::vector<SampledRow> rows = sampler_.choose(step);
  const Result<StepCost> cost = stack_->run(batch, [&](int32_t layer, const LayerOutput& output) {
    if (output.is_on_host()) {
      const auto out_bytes = static_cast<size_t>(step.tokens) *
                             static_cast<size_t>(config_.stack.model.num_q_heads) *
                             static_cast<size_t>(config_.stack.model.head_dim) *
                             static_cast<size_t>(size_bytes(config_.stack.dtype));
      metrics_.checksum = checksum(metrics_.checksum, std::span(output.out(), out_bytes));
    }
    check_rows(layer, output, rows);
  });
  if (!cost) return cost.status();
  clock_.charge(*cost);
  track_work(step);
  record_step(step, *cost, start_s);
  record_outcome(scheduler_.commit(step));
  metrics_.steps.back().cached_share_after =
      static_cast<float>(blocks_.cached_pages()) / static_cast<float>(blocks_.num_pages());
  return {};
}

void Session::check_rows(int32_t layer, const LayerOutput& output,
                         const std::vector<SampledRow>& rows) {
  const ModelShape& model = config_.stack.model;
  for (const SampledRow& sampled : rows) {
    if (sampled.row.layer != layer) continue;
    const LayerOutput::Row row =
        output.row(sampled.batch_row * model.num_q_heads + sampled.row.q_head);
    if (!output.is_on_host()) metrics_.checksum = checksum(metrics_.checksum, row.out);
    std::vector<float> out;
    for (int64_t d = 0; d < model.head_dim; ++d) {
      out.push_back(core::load_element(row.out.data(), config_.stack.dtype, d));
    }
    const oracle::ExpectedRow reference =
        reference_row(model, synthesis_, contents_[static_cast<size_t>(sampled.sequence)],
                      sampled.row, config_.stack.dtype);
    const std::string what = compare(reference, sampled.row, out, row.lse);
    ++metrics_.checked_rows[static_cast<size_t>(sampled.phase)];
    if (what.empty()) continue;
    ++metrics_.mismatches;
    if (metrics_.first_mismatches.size() < kMismatchesToShow) {
      metrics_.first_mismatches.push_back({.request = sampled.sequence,
                                           .position = sampled.row.position,
                                           .layer = layer,
                                           .q_head = sampled.row.q_head,
                                           .phase = name(sampled.phase),
                                           .what = what});
    }
  }
}

// Recomputed tokens do not count as progress.
void Session::track_work(const Step& step) {
  for (const Chunk& chunk : step.chunks) {
    int64_t& reached = reached_[static_cast<size_t>(chunk.sequence)];
    const int64_t end = chunk.start + chunk.tokens;
    if (end <= reached) continue;
    done_work_ += work_until(end) - work_until(reached);
    metrics_.processed_tokens += end - reached;
    reached = end;
  }
}

void Session::record_step(const Step& step, const StepCost& cost, double start_s) {
  metrics_.cost += cost;
  metrics_.kernel = stack_->kernel();
  metrics_.computed_tokens += step.tokens;
  int64_t decode_tokens = 0;
  for (const Chunk& chunk : step.chunks) {
    if (chunk.phase == Phase::kDecode) decode_tokens += chunk.tokens;
  }
  const auto pages = static_cast<float>(blocks_.num_pages());
  metrics_.steps.push_back({.start_s = start_s,
                            .end_s = clock_.now(),
                            .attention_seconds = static_cast<float>(cost.attention_seconds),
                            .append_seconds = static_cast<float>(cost.append_seconds),
                            .flops = cost.flops,
                            .bytes = cost.bytes,
                            .prefill_tokens = static_cast<int32_t>(step.tokens - decode_tokens),
                            .decode_tokens = static_cast<int32_t>(decode_tokens),
                            .running = static_cast<int32_t>(scheduler_.num_running()),
                            .waiting = static_cast<int32_t>(scheduler_.num_waiting()),
                            .held_share = static_cast<float>(blocks_.held_pages()) / pages,
                            .cached_share = static_cast<float>(blocks_.cached_pages()) / pages});
}

void Session::record_outcome(const StepOutcome& outcome) {
  metrics_.output_tokens += outcome.output_tokens;
  for (const int32_t index : outcome.first_tokens) {
    metrics_.requests[static_cast<size_t>(index)].first_token_s = clock_.now();
  }
  for (const int32_t index : outcome.finished) {
    metrics_.requests[static_cast<size_t>(index)].finish_s = clock_.now();
  }
  completed_ += std::ssize(outcome.finished);
}

void Session::finish() {
  metrics_.clock_seconds = clock_.now();
  metrics_.preemptions = scheduler_.preemptions();
  metrics_.evictions = blocks_.evictions();
  for (size_t i = 0; i < next_arrival_; ++i) {
    const Sequence& sequence = scheduler_.sequence(static_cast<int32_t>(i));
    if (!sequence.was_admitted) continue;
    metrics_.prompt_tokens += sequence.prompt_tokens;
    metrics_.reused_tokens += sequence.reused_tokens;
  }
}

SessionProgress Session::progress() const {
  return {.done_share = total_work_ > 0 ? std::min(1.0, done_work_ / total_work_) : 1.0,
          .completed = completed_,
          .processed_tokens = metrics_.processed_tokens,
          .held_share =
              static_cast<double>(blocks_.held_pages()) / static_cast<double>(blocks_.num_pages())};
}

}  // namespace pagoda::replay
