// The order of threads.
#include "emulator/machine/scheduler.hpp"

#include <string>

#include "emulator/machine/hierarchy.hpp"

namespace pagoda::emulator {

const Thread* Scheduler::acting() const {
  return completing_ != nullptr ? completing_->issuer : running_;
}

// --- from inside a thread ----------------------------------------------------------------------

void Scheduler::block(Waiting waiting) {
  Thread& thread = *running_;
  thread.waiting = std::move(waiting);
  thread.state = ThreadState::kBlocked;
  Fiber::suspend();
}

void Scheduler::wake(Thread& thread) {
  if (thread.state != ThreadState::kBlocked) return;
  thread.state = ThreadState::kReady;
  ready_.push_back(&thread);
}

void Scheduler::poll(const Waiting& waiting) {
  Thread& thread = *running_;
  thread.waiting = waiting;
  thread.state = ThreadState::kPolling;
  polling_.push_back(&thread);
  Fiber::suspend();
}

void Scheduler::maybe_yield() {
  Thread& thread = *running_;
  if (mode_ != Mode::kRandom || (!starves(thread) && random_() % 4 != 0)) return;
  ready_.push_back(&thread);
  Fiber::suspend();
}

void Scheduler::end_time_slice(const char* primitive, const Where& where) {
  poll({.what = "memory: ",
        .which = std::to_string(kTimeSlice) + " accesses without waiting for anybody",
        .primitive = primitive,
        .where = where});
}

// --- choices -----------------------------------------------------------------------------------

// Some threads run only when nothing else can. With odd seeds it is one lane of one warp: the lanes
// of a warp need not keep together. With multiples of four it is one warpgroup, or one warp of a
// CTA that has no two warpgroups: a role may be far behind the others. Neighbouring CTAs have them
// at different places, so that few seeds reach all.
bool Scheduler::starves(const Thread& thread) const {
  constexpr uint64_t kWarpgroup = 4;  // warps
  const size_t warps = thread.cta->warps.size();
  if (seed_ % 4 == 0) {
    const uint64_t group = warps > kWarpgroup ? kWarpgroup : 1;
    const uint64_t groups = (warps + group - 1) / group;
    return groups > 1 &&
           static_cast<uint64_t>(thread.warp()) / group == (seed_ / 4 + thread.cta->index) % groups;
  }
  if (seed_ % 2 == 0) return false;
  const uint64_t turn = seed_ / 2 + thread.cta->index * (warps / 2);
  return static_cast<uint64_t>(thread.warp()) == turn % warps &&
         static_cast<uint64_t>(thread.lane()) ==
             (turn * 2654435761U >> 13) % static_cast<uint64_t>(thread.warp_size);
}

bool Scheduler::is_async_turn() {
  constexpr int kSwitchesPerAsync = 16;  // round-robin: one operation completes every so many
  const bool is_turn = (mode_ == Mode::kRandom && random_() % 8 == 0) ||
                       (mode_ == Mode::kRoundRobin && ++switches_since_async_ >= kSwitchesPerAsync);
  if (is_turn) switches_since_async_ = 0;
  return is_turn;
}

Thread* Scheduler::next_thread(bool has_operations) {
  // In mode random a polling thread may run before the ready ones; else when none is ready.
  const bool polls = mode_ == Mode::kRandom && !polling_.empty() && random_() % 8 == 0;
  return polls ? next_polling() : next_ready(has_operations);
}

Thread* Scheduler::next_ready(bool has_operations) {
  if (ready_.empty()) return nullptr;
  if (mode_ == Mode::kRandom) {
    size_t chosen = random_() % ready_.size();
    if (starves(*ready_[chosen])) {
      for (size_t i = 0; i < ready_.size() && starves(*ready_[chosen]); ++i) {
        chosen = (chosen + 1) % ready_.size();
      }
      if (starves(*ready_[chosen]) && has_operations) return nullptr;
    }
    std::swap(ready_[chosen], ready_.back());
    Thread* const thread = ready_.back();
    ready_.pop_back();
    return thread;
  }
  Thread* const thread = ready_.front();
  ready_.pop_front();
  return thread;
}

Thread* Scheduler::next_polling() {
  Thread* const thread = polling_.front();
  polling_.pop_front();
  thread->state = ThreadState::kReady;
  return thread;
}

Thread* Scheduler::next_idle_poll() {
  constexpr uint64_t kMaxIdlePolls = 64;  // rounds over all polling threads without progress
  if (polling_.empty() || rounds_without_progress_ >= kMaxIdlePolls * polling_.size()) {
    return nullptr;
  }
  ++rounds_without_progress_;
  return next_polling();
}

bool Scheduler::resume(Thread& thread) {
  const uint64_t before = progress_;
  ++switches_;
  accesses_since_switch_ = 0;
  running_ = &thread;
  thread.fiber->resume();
  running_ = nullptr;
  if (progress_ != before) rounds_without_progress_ = 0;
  if (is_over_ || !thread.fiber->is_done()) return false;
  progress();
  rounds_without_progress_ = 0;
  return true;
}

}  // namespace pagoda::emulator
