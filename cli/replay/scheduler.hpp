// Continuous batching: decides which tokens of which requests one step computes. Decodes go first,
// then chunks of prompts, both within one token budget; when the cache is full, the request that
// was admitted last releases its pages and is recomputed later (preemption).
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "cli/replay/block_manager.hpp"
#include "pagoda/status.hpp"

namespace pagoda::replay {

struct SchedulerLimits {
  int64_t token_budget = 2048;  // tokens of one step
  int64_t max_running = 64;     // requests that hold pages at the same time
  int64_t page_size = 64;
};

// A request while it is served. Its K/V exists for positions [0, computed).
struct Sequence {
  int64_t prompt_tokens = 0;
  int64_t output_tokens = 0;
  std::vector<uint64_t> page_keys;  // of the leading pages that may be shared

  int64_t computed = 0;
  int64_t generated = 0;  // output tokens known so far; they survive a preemption
  std::vector<int32_t> pages;
  int64_t published_pages = 0;
  int64_t reused_tokens = 0;  // found in the cache when it was first admitted
  int64_t preemptions = 0;
  bool was_admitted = false;
  bool is_first_chunk = false;  // since its last admission

  // Tokens whose K/V is needed before the next output token can be computed.
  [[nodiscard]] int64_t known() const { return prompt_tokens + generated; }
  [[nodiscard]] bool is_decoding() const { return generated > 0 && known() - computed == 1; }
  // The last output token is never fed back.
  [[nodiscard]] int64_t max_tokens() const { return prompt_tokens + output_tokens - 1; }
};

enum class Phase : uint8_t {
  kPrefill,    // a chunk of a prompt
  kReused,     // the first chunk after a reused prefix
  kRecompute,  // a chunk of a request that was preempted
  kDecode,     // one token
};
inline constexpr int kNumPhases = 4;
[[nodiscard]] const char* name(Phase phase);

struct Chunk {
  int32_t sequence = 0;
  int64_t start = 0;  // position of the first token
  int64_t tokens = 0;
  Phase phase = Phase::kPrefill;
};

struct Step {
  std::vector<Chunk> chunks;
  int64_t tokens = 0;
};

// The results of a step, as indices of sequences.
struct StepOutcome {
  std::vector<int32_t> first_tokens, finished;
  int64_t output_tokens = 0;
};

class Scheduler {
 public:
  Scheduler(const SchedulerLimits& limits, BlockManager& blocks)
      : limits_(limits), blocks_(blocks) {}

  // Queues a request; sequences are numbered in this order, rejected ones included. Fails if the
  // whole cache could not hold it.
  [[nodiscard]] Status submit(Sequence sequence);

  // The next step; empty when nothing waits or runs. Follow with commit() of the same step.
  [[nodiscard]] Step schedule();
  [[nodiscard]] StepOutcome commit(const Step& step);

  [[nodiscard]] const Sequence& sequence(int32_t index) const {
    return sequences_[static_cast<size_t>(index)];
  }
  [[nodiscard]] int64_t num_running() const { return std::ssize(running_); }
  [[nodiscard]] int64_t num_waiting() const { return std::ssize(waiting_); }
  [[nodiscard]] int64_t preemptions() const { return preemptions_; }

 private:
  [[nodiscard]] Sequence& at(int32_t index) { return sequences_[static_cast<size_t>(index)]; }
  [[nodiscard]] int64_t pages_for(int64_t tokens) const {
    return (tokens + limits_.page_size - 1) / limits_.page_size;
  }
  void schedule_running(bool decoding, Step& step);
  bool schedule_chunk(int32_t index, Step& step);
  int64_t grow(Sequence& sequence, int64_t tokens);
  void preempt_last(Step& step);
  void admit(Step& step);
  bool admit_next();
  void publish_full_pages(Sequence& sequence);

  SchedulerLimits limits_;
  BlockManager& blocks_;
  std::vector<Sequence> sequences_;
  std::vector<int32_t> running_;  // in order of admission: the last one is preempted first
  std::deque<int32_t> waiting_;
  int64_t preemptions_ = 0;
};

}  // namespace pagoda::replay
