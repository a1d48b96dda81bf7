// The policy. Progress is certain: the request that was admitted first may take the pages of all
// others, and one that could not be served even then is rejected by submit().
#include "cli/replay/scheduler.hpp"

#include <algorithm>
#include <cassert>
#include <fmt/format.h>

namespace pagoda::replay {

const char* name(Phase phase) {
  switch (phase) {
    case Phase::kPrefill: return "prefill";
    case Phase::kReused: return "reused";
    case Phase::kRecompute: return "recompute";
    case Phase::kDecode: return "decode";
  }
  return "?";
}

Status Scheduler::submit(Sequence sequence) {
  const auto index = static_cast<int32_t>(sequences_.size());
  const int64_t needed = pages_for(sequence.max_tokens());
  const int64_t tokens = sequence.max_tokens();
  sequences_.push_back(std::move(sequence));
  if (needed > blocks_.num_pages()) {
    return Status::invalid(
        fmt::format("request {}", index), fmt::format("{} tokens long", tokens),
        fmt::format("the whole cache holds {}; enlarge it with --cache-gib or --cache-tokens, "
                    "or run fewer --layers",
                    blocks_.num_pages() * limits_.page_size));
  }
  waiting_.push_back(index);
  return {};
}

Step Scheduler::schedule() {
  Step step;
  const int64_t preemptions_before = preemptions_;
  schedule_running(/*decoding=*/true, step);
  schedule_running(/*decoding=*/false, step);
  // A sequence that was preempted in this step is not admitted in it: it would preempt another one.
  if (preemptions_ == preemptions_before) admit(step);
  return step;
}

void Scheduler::schedule_running(bool decoding, Step& step) {
  const std::vector<int32_t> candidates = running_;  // preemption shortens running_
  for (const int32_t index : candidates) {
    if (step.tokens >= limits_.token_budget) return;
    if (std::find(running_.begin(), running_.end(), index) == running_.end()) continue;
    if (at(index).is_decoding() == decoding) schedule_chunk(index, step);
  }
}

// Adds the next chunk of a running sequence, preempting later ones if necessary. False if the
// sequence itself was preempted.
bool Scheduler::schedule_chunk(int32_t index, Step& step) {
  Sequence& sequence = at(index);
  const int64_t wanted =
      std::min(sequence.known() - sequence.computed, limits_.token_budget - step.tokens);
  int64_t tokens = grow(sequence, wanted);
  while (tokens == 0) {
    const bool is_self = running_.back() == index;
    preempt_last(step);
    if (is_self) return false;
    tokens = grow(sequence, wanted);
  }
  Phase phase = Phase::kPrefill;
  if (sequence.is_decoding()) {
    phase = Phase::kDecode;
  } else if (sequence.preemptions > 0) {
    phase = Phase::kRecompute;
  } else if (sequence.is_first_chunk && sequence.computed > 0) {
    phase = Phase::kReused;
  }
  step.chunks.push_back(
      {.sequence = index, .start = sequence.computed, .tokens = tokens, .phase = phase});
  step.tokens += tokens;
  return true;
}

// Allocates pages for up to `tokens` more tokens; returns the number of tokens that fit.
int64_t Scheduler::grow(Sequence& sequence, int64_t tokens) {
  const int64_t held = std::ssize(sequence.pages);
  const int64_t wanted = pages_for(sequence.computed + tokens) - held;
  const int64_t granted = std::min(wanted, blocks_.available_pages());
  if (granted > 0) {
    const auto pages = blocks_.allocate(granted);
    sequence.pages.insert(sequence.pages.end(), pages->begin(), pages->end());
  }
  const int64_t room = std::ssize(sequence.pages) * limits_.page_size - sequence.computed;
  return std::min(tokens, room);
}

void Scheduler::preempt_last(Step& step) {
  const int32_t index = running_.back();
  Sequence& sequence = at(index);
  const auto same = [&](const Chunk& chunk) { return chunk.sequence == index; };
  const auto chunk = std::find_if(step.chunks.begin(), step.chunks.end(), same);
  if (chunk != step.chunks.end()) {
    step.tokens -= chunk->tokens;
    step.chunks.erase(chunk);
  }
  blocks_.release(sequence.pages);
  sequence.pages.clear();
  sequence.published_pages = 0;
  sequence.computed = 0;
  ++sequence.preemptions;
  ++preemptions_;
  running_.pop_back();
  waiting_.push_front(index);
}

void Scheduler::admit(Step& step) {
  while (!waiting_.empty() && step.tokens < limits_.token_budget &&
         num_running() < limits_.max_running) {
    if (!admit_next()) return;
    const bool has_pages = schedule_chunk(running_.back(), step);
    assert(has_pages);
    static_cast<void>(has_pages);
  }
}

// Admits the head of the queue if its whole prompt fits in addition to the remaining needs of
// running prompts: then only output tokens can fill the cache.
bool Scheduler::admit_next() {
  const int32_t index = waiting_.front();
  Sequence& sequence = at(index);
  // At least one token has to be computed: the next output token depends on it.
  const int64_t sharable =
      std::min<int64_t>(std::ssize(sequence.page_keys), (sequence.known() - 1) / limits_.page_size);
  const std::span<const uint64_t> keys(sequence.page_keys.data(), static_cast<size_t>(sharable));
  const auto hits = keys.first(static_cast<size_t>(blocks_.find_prefix(keys)));
  int64_t outstanding = 0;
  for (const int32_t other : running_) {
    outstanding += pages_for(at(other).known()) - std::ssize(at(other).pages);
  }
  const int64_t fresh = pages_for(sequence.known()) - std::ssize(hits);
  if (fresh + blocks_.count_cached(hits) + outstanding > blocks_.available_pages()) return false;

  sequence.pages = blocks_.share(hits);
  sequence.published_pages = std::ssize(hits);
  sequence.computed = std::ssize(hits) * limits_.page_size;
  sequence.is_first_chunk = true;
  if (!sequence.was_admitted) sequence.reused_tokens = sequence.computed;
  sequence.was_admitted = true;
  waiting_.pop_front();
  running_.push_back(index);
  return true;
}

StepOutcome Scheduler::commit(const Step& step) {
  StepOutcome outcome;
  for (const Chunk& chunk : step.chunks) {
    Sequence& sequence = at(chunk.sequence);
    sequence.computed += chunk.tokens;
    sequence.is_first_chunk = false;
    publish_full_pages(sequence);
    if (sequence.computed < sequence.known()) continue;
    ++outcome.output_tokens;
    if (++sequence.generated == 1) outcome.first_tokens.push_back(chunk.sequence);
    if (sequence.generated < sequence.output_tokens) continue;
    outcome.finished.push_back(chunk.sequence);
    blocks_.release(sequence.pages);
    sequence.pages.clear();
    std::erase(running_, chunk.sequence);
  }
  return outcome;
}

// Publishes computed pages only: a page that another request finds holds its data.
void Scheduler::publish_full_pages(Sequence& sequence) {
  const int64_t full =
      std::min<int64_t>(sequence.computed / limits_.page_size, std::ssize(sequence.page_keys));
  for (int64_t& i = sequence.published_pages; i < full; ++i) {
    blocks_.publish(sequence.pages[static_cast<size_t>(i)],
                    sequence.page_keys[static_cast<size_t>(i)]);
  }
}

}  // namespace pagoda::replay
