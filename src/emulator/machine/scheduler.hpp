// Chooses the thread that runs next, by mode and seed, and records what executes now. All random
// choices of a run draw from its generator, so that a seed replays the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <utility>

#include "emulator/machine/options.hpp"
#include "emulator/sync/barrier_state.hpp"

namespace pagoda::emulator {

struct AsyncOperation;
struct Thread;

class Scheduler {
 public:
  Scheduler(Mode mode, uint64_t seed) : mode_(mode), seed_(seed), random_(seed) {}

  [[nodiscard]] Mode mode() const { return mode_; }
  std::mt19937_64& random() { return random_; }
  uint64_t next_step() { return ++step_; }  // the clock of traces and of Options::max_steps
  [[nodiscard]] uint64_t steps() const { return step_; }
  [[nodiscard]] uint64_t switches() const { return switches_; }

  // --- what executes now ---
  [[nodiscard]] Thread* running() const { return running_; }  // nullptr: no thread does
  // The operation of an engine that is being carried out, also inside a thread that issued it.
  [[nodiscard]] const AsyncOperation* completing() const { return completing_; }
  // The issuer of that operation, or the running thread.
  [[nodiscard]] const Thread* acting() const;
  // While it lives, `operation` is carried out.
  class Completing {
   public:
    Completing(Scheduler& scheduler, const AsyncOperation* operation)
        : scheduler_(scheduler), outer_(std::exchange(scheduler.completing_, operation)) {}
    ~Completing() { scheduler_.completing_ = outer_; }
    Completing(const Completing&) = delete;
    Completing& operator=(const Completing&) = delete;

   private:
    Scheduler& scheduler_;
    const AsyncOperation* outer_;
  };

  // --- from inside a thread ---
  void block(Waiting waiting);        // until wake()
  void poll(const Waiting& waiting);  // other threads run first; a deadlock if none makes progress
  void maybe_yield();                 // another thread may run first (kRandom)
  // One access to memory: a thread that makes very many without a wait polls.
  void count_access(const char* primitive, const Where& where) {
    if (++accesses_since_switch_ == kTimeSlice) end_time_slice(primitive, where);
  }
  // From anywhere.
  void wake(Thread& thread);
  void progress() { ++progress_; }  // something changed that another thread could wait for
  void end_run() { is_over_ = true; }

  // --- by the machine's loop ---
  [[nodiscard]] bool is_over() const { return is_over_; }
  void start(Thread& thread) { ready_.push_back(&thread); }
  // May an operation complete before the next thread runs?
  bool is_async_turn();
  // The thread to run; nullptr: an operation must complete first, or all threads poll.
  // `has_operations`: an operation could complete.
  Thread* next_thread(bool has_operations);
  // A polling thread, when nothing else can run; nullptr: no poll has seen progress.
  Thread* next_idle_poll();
  // Runs it until it suspends or ends. True: it has ended.
  bool resume(Thread& thread);

 private:
  // A thread that makes so many accesses may be in a loop that another thread ends.
  static constexpr uint32_t kTimeSlice = 1U << 16;

  [[nodiscard]] bool starves(const Thread& thread) const;
  Thread* next_ready(bool has_operations);
  Thread* next_polling();
  void end_time_slice(const char* primitive, const Where& where);

  Mode mode_;
  uint64_t seed_;
  std::mt19937_64 random_;
  std::deque<Thread*> ready_;
  std::deque<Thread*> polling_;
  Thread* running_ = nullptr;
  const AsyncOperation* completing_ = nullptr;
  uint64_t step_ = 0;
  uint64_t switches_ = 0;
  uint64_t progress_ = 0;
  uint64_t rounds_without_progress_ = 0;
  int switches_since_async_ = 0;
  uint32_t accesses_since_switch_ = 0;
  bool is_over_ = false;
};

}  // namespace pagoda::emulator
