// The order of threads without a launch: fibers that note their turns.
#include "emulator/machine/scheduler.hpp"

#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "emulator/machine/hierarchy.hpp"

namespace pagoda::emulator {
namespace {

// A CTA whose threads run `body(thread)` on a scheduler alone.
struct Bench {
  Scheduler scheduler;
  Cta cta;
  std::string story;

  Bench(Mode mode, uint64_t seed, int threads, const std::function<void(Bench&, int)>& body)
      : scheduler(mode, seed) {
    cta.warps.resize(1);
    cta.threads.resize(static_cast<size_t>(threads));
    for (int i = 0; i < threads; ++i) {
      Thread& thread = cta.threads[static_cast<size_t>(i)];
      thread.cta = &cta;
      thread.index = i;
      thread.fiber = std::make_unique<Fiber>([this, body, i] { body(*this, i); });
      scheduler.start(thread);
    }
  }
  // Until no thread can run.
  std::string run() {
    for (;;) {
      Thread* thread = scheduler.next_thread(false);
      if (thread == nullptr) thread = scheduler.next_idle_poll();
      if (thread == nullptr) return story;
      if (scheduler.resume(*thread)) thread->state = ThreadState::kDone;
    }
  }
};

void yield_twice(Bench& bench, int thread) {
  for (int turn = 0; turn < 3; ++turn) {
    bench.story += std::to_string(thread);
    bench.scheduler.maybe_yield();
  }
}

TEST(Scheduler, a_thread_yields_in_mode_random_only) {
  for (const Mode mode : {Mode::kRoundRobin, Mode::kEager, Mode::kLazy}) {
    EXPECT_EQ(Bench(mode, 1, 3, yield_twice).run(), "000111222") << name(mode);
  }
}

TEST(Scheduler, a_seed_replays_its_order_and_another_seed_has_another) {
  const auto order = [](uint64_t seed) { return Bench(Mode::kRandom, seed, 3, yield_twice).run(); };
  EXPECT_EQ(order(4), order(4));
  bool differs = false;
  for (uint64_t seed = 1; seed < 10; ++seed) differs = differs || order(seed) != order(4);
  EXPECT_TRUE(differs);
}

TEST(Scheduler, a_blocked_thread_runs_after_it_is_woken) {
  Bench bench(Mode::kRoundRobin, 1, 2, [](Bench& self, int thread) {
    if (thread == 0) self.scheduler.block({.what = "thread 1", .primitive = "test", .where = {}});
    self.story += std::to_string(thread);
    if (thread == 1) self.scheduler.wake(self.cta.threads[0]);
  });
  EXPECT_EQ(bench.run(), "10");
  EXPECT_EQ(bench.scheduler.switches(), 3U);
}

TEST(Scheduler, a_poll_lets_others_run_and_ends_in_vain_without_progress) {
  int polls = 0;
  Bench bench(Mode::kRoundRobin, 1, 1, [&](Bench& self, int) {
    for (;; ++polls) self.scheduler.poll({.what = "a word", .primitive = "test", .where = {}});
  });
  bench.run();
  EXPECT_EQ(polls, 64);
  EXPECT_EQ(bench.cta.threads[0].state, ThreadState::kPolling);
}

TEST(Scheduler, very_many_accesses_without_a_wait_are_a_poll) {
  Bench bench(Mode::kRoundRobin, 1, 2, [](Bench& self, int thread) {
    for (int i = 0; thread == 0 && i < 70000; ++i) {
      self.scheduler.count_access("load", Where::current());
    }
    self.story += std::to_string(thread);
  });
  EXPECT_EQ(bench.run(), "10");
}

}  // namespace
}  // namespace pagoda::emulator
