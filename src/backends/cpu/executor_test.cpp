// Executors: every body runs exactly once, nested and from several threads.
#include "pagoda/executor.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdexcept>
#include <thread>
#include <vector>

namespace pagoda {
namespace {

struct Turns {
  explicit Turns(int32_t n) : counts(static_cast<size_t>(n)) {}
  std::vector<std::atomic<int32_t>> counts;

  static void body(void* context, int32_t i) {
    static_cast<Turns*>(context)->counts[static_cast<size_t>(i)].fetch_add(1);
  }
  void run(Executor& executor) {
    executor.parallel(static_cast<int32_t>(counts.size()), body, this);
  }
  [[nodiscard]] bool each_was(int32_t times) const {
    return std::ranges::all_of(counts,
                               [times](const auto& count) { return count.load() == times; });
  }
};

class Executors : public testing::TestWithParam<Executor& (*)()> {};

TEST_P(Executors, every_body_runs_once) {
  Executor& executor = GetParam()();
  ASSERT_GE(executor.workers(), 1);
  for (int32_t n = 0; n <= executor.workers(); ++n) {
    Turns turns(n);
    for (int i = 0; i < 50; ++i) turns.run(executor);
    EXPECT_TRUE(turns.each_was(50)) << n;
  }
}

TEST_P(Executors, regions_nest) {
  struct Context {
    Executor* executor;
    std::atomic<int32_t> inner{0};
  } context{&GetParam()()};
  const int32_t n = context.executor->workers();
  context.executor->parallel(
      n,
      [](void* p, int32_t) {
        auto& outer = *static_cast<Context*>(p);
        outer.executor->parallel(
            outer.executor->workers(),
            [](void* q, int32_t) { static_cast<Context*>(q)->inner.fetch_add(1); }, p);
      },
      &context);
  EXPECT_EQ(context.inner.load(), n * n);
}

// A thread that waits for its own bodies must not begin another body of the outer region.
TEST_P(Executors, a_nested_region_starts_no_outer_body_on_its_thread) {
  struct Context {
    Executor* executor;
    std::atomic<int32_t> reentered{0};
  } context{&GetParam()()};
  static thread_local int32_t depth = 0;
  for (int round = 0; round < 200; ++round) {
    context.executor->parallel(
        context.executor->workers(),
        [](void* p, int32_t) {
          auto& outer = *static_cast<Context*>(p);
          if (depth++ != 0) outer.reentered.fetch_add(1);
          outer.executor->parallel(
              outer.executor->workers(),
              [](void*, int32_t) {
                for (std::atomic<int> spin = 0; spin < 200; ++spin) continue;
              },
              p);
          --depth;
        },
        &context);
  }
  EXPECT_EQ(context.reentered.load(), 0);
}

TEST_P(Executors, several_threads_share_it) {
  Executor& executor = GetParam()();
  Turns turns(executor.workers());
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) turns.run(executor);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(turns.each_was(400));
}

TEST_P(Executors, an_exception_reaches_the_caller) {
  Executor& executor = GetParam()();
  const auto fail = [](void*, int32_t) { throw std::runtime_error("body"); };
  EXPECT_THROW(executor.parallel(executor.workers(), fail, nullptr), std::runtime_error);
  Turns turns(executor.workers());
  turns.run(executor);
  EXPECT_TRUE(turns.each_was(1));
}

INSTANTIATE_TEST_SUITE_P(Both, Executors, testing::Values(&default_executor, &serial_executor),
                         [](const auto& test) {
                           return test.index == 0 ? "default_executor" : "serial_executor";
                         });

// Runs `body` in a separate process, where the environment has not been read yet.
#define IN_FRESH_PROCESS(body) EXPECT_EXIT((body, std::exit(0)), testing::ExitedWithCode(0), "")

void require(bool claim) {
  if (!claim) std::exit(1);
}

void two_workers_run_apart(const char* pinned) {
  setenv("PAGODA_NUM_THREADS", "2", 1);
  setenv("PAGODA_PIN_THREADS", pinned, 1);
  require(default_executor().workers() == 2);
  cpu_set_t before, after;
  sched_getaffinity(0, sizeof before, &before);
  struct Seen {
    std::atomic<int32_t> arrived{0};
    std::atomic<int32_t> cpus[2] = {-1, -1};
  } seen;
  default_executor().parallel(
      2,
      [](void* context, int32_t i) {
        auto& s = *static_cast<Seen*>(context);
        cpu_set_t mine;
        sched_getaffinity(0, sizeof mine, &mine);
        s.cpus[i] = CPU_COUNT(&mine);
        s.arrived.fetch_add(1);
        // Both bodies at once: two threads, also where there are fewer processors.
        while (s.arrived.load() < 2) std::this_thread::yield();
      },
      &seen);
  sched_getaffinity(0, sizeof after, &after);
  require(CPU_EQUAL(&before, &after) != 0);
  const int32_t expected = pinned[0] == '1' ? 1 : CPU_COUNT(&before);
  require(seen.cpus[0] == expected && seen.cpus[1] == expected);
}

void ignores_nonsense() {
  setenv("PAGODA_NUM_THREADS", "many", 1);
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  require(default_executor().workers() == CPU_COUNT(&set));
}

void obeys_the_affinity_mask() {
  unsetenv("PAGODA_NUM_THREADS");
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  require(default_executor().workers() == 1);
}

class ExecutorDeathTest : public testing::Test {
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(ExecutorDeathTest, PAGODA_NUM_THREADS_sets_the_workers) {
  IN_FRESH_PROCESS(two_workers_run_apart("0"));
}
TEST_F(ExecutorDeathTest, PAGODA_PIN_THREADS_pins_and_gives_masks_back) {
  IN_FRESH_PROCESS(two_workers_run_apart("1"));
}
TEST_F(ExecutorDeathTest, nonsense_in_PAGODA_NUM_THREADS_is_ignored) {
  IN_FRESH_PROCESS(ignores_nonsense());
}
TEST_F(ExecutorDeathTest, workers_follow_the_affinity_mask) {
  IN_FRESH_PROCESS(obeys_the_affinity_mask());
}

}  // namespace
}  // namespace pagoda
