// Issue and completion of operations without a launch.
#include "emulator/async/engines.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <string>

namespace pagoda::emulator {
namespace {

// One thread of one CTA, and engines.
struct Bench {
  LaunchShape shape;
  Scheduler scheduler;
  Reporter reporter{"k", {}, scheduler};
  TraceRecorder trace{nullptr, scheduler};
  AsyncEngines engines{shape, scheduler, reporter, trace};
  Cluster cluster;
  std::string story;

  explicit Bench(Mode mode, uint64_t seed = 1) : scheduler(mode, seed) {
    auto cta = std::make_unique<Cta>();
    cta->cluster = &cluster;
    cta->threads.resize(1);
    Thread& thread = cta->threads[0];
    thread.cta = cta.get();
    thread.agent = make_agent(0, 0);
    thread.clocks = std::make_shared<Clocks>();
    cluster.ctas.push_back(std::move(cta));
  }
  Cta& cta() { return *cluster.ctas[0]; }
  Thread& thread() { return cta().threads[0]; }
  std::unique_ptr<AsyncOperation> operation(const char* label) {
    return engines.make_operation("test", Where::current(), thread(),
                                  [this, label](AsyncOperation&) { story += label; });
  }
  void complete_all() {
    while (engines.complete_one()) {
    }
  }
};

TEST(AsyncEngines, eager_completes_at_the_issue_and_lazy_later) {
  Bench eager(Mode::kEager), lazy(Mode::kLazy);
  eager.engines.submit(eager.operation("a"));
  EXPECT_EQ(eager.story, "a");
  EXPECT_EQ(eager.cluster.operations_in_flight, 0);
  lazy.engines.submit(lazy.operation("a"));
  EXPECT_EQ(lazy.story, "");
  EXPECT_EQ(lazy.cluster.operations_in_flight, 1);
  EXPECT_TRUE(lazy.engines.complete_one());
  EXPECT_EQ(lazy.story, "a");
  EXPECT_FALSE(lazy.engines.complete_one());
}

TEST(AsyncEngines, a_queue_completes_in_order_and_others_in_any) {
  bool differs = false;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Bench bench(Mode::kRandom, seed);
    AsyncQueue queue;
    bench.engines.submit(bench.operation("a"), &queue);
    bench.engines.submit(bench.operation("b"), &queue);
    bench.engines.submit(bench.operation("c"));
    bench.complete_all();
    EXPECT_LT(bench.story.find('a'), bench.story.find('b')) << bench.story;
    differs = differs || bench.story != "abc";
  }
  EXPECT_TRUE(differs);
}

TEST(AsyncEngines, finish_completes_a_queue_now) {
  Bench bench(Mode::kLazy);
  AsyncQueue queue;
  bench.engines.submit(bench.operation("a"), &queue);
  bench.engines.submit(bench.operation("b"), &queue);
  bench.engines.finish(queue);
  EXPECT_EQ(bench.story, "ab");
  EXPECT_FALSE(bench.engines.has_ready());
}

TEST(AsyncEngines, the_second_of_two_in_order_waits_for_the_first) {
  for (const Mode mode : kModes) {
    Bench bench(mode);
    auto first = bench.operation("a");
    bench.engines.submit_in_order(std::move(first), bench.operation("b"));
    bench.complete_all();
    EXPECT_EQ(bench.story, "ab") << name(mode);
  }
}

TEST(AsyncEngines, an_operation_that_no_thread_waited_for_is_reported_at_the_end) {
  Bench bench(Mode::kEager);
  auto operation = bench.operation("a");
  auto detached = bench.operation("b");  // made before the first completes: in another slot
  detached->is_detached = true;
  bench.engines.submit(std::move(operation));
  bench.engines.submit(std::move(detached));
  bench.engines.report_end(bench.cta());
  const std::vector<Report> reports = bench.reporter.take();
  ASSERT_EQ(reports.size(), 1U);
  EXPECT_NE(reports[0].message.find("without any thread having waited"), std::string::npos);

  Bench waited(Mode::kEager);
  auto awaited = waited.operation("a");
  const Agent agent = awaited->agent;
  waited.engines.submit(std::move(awaited));
  waited.thread().own_clocks().generic.set(agent, 1);
  waited.engines.report_end(waited.cta());
  EXPECT_TRUE(waited.reporter.take().empty());
}

}  // namespace
}  // namespace pagoda::emulator
