// The Chrome JSON of a trace: spans balanced whatever the events are, flows that have both ends,
// operations that overlap on tracks of their own.
#include "emulator/trace/trace.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "arch/cluster.hpp"
#include "arch/debug.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "emulator/machine/launch.hpp"

namespace pagoda::emulator {
namespace {

using namespace arch;
using Kind = TraceEvent::Kind;

TraceEvent event(Kind kind, uint64_t step, std::string name, std::string category) {
  return {.kind = kind,
          .step = step,
          .name = std::move(name),
          .category = std::move(category),
          .role = "load",
          .source = {},
          .details = {}};
}

size_t count(std::string_view text, std::string_view part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Trace, nested_spans_keep_their_bounds) {
  Tracer tracer;
  tracer.record(event(Kind::kBegin, 1, "outer", "work"));
  tracer.record(event(Kind::kBegin, 3, "inner", "wait"));
  tracer.record(event(Kind::kEnd, 5, "", "wait"));
  tracer.record(event(Kind::kEnd, 9, "", "work"));
  const std::string json = tracer.to_chrome_json();
  EXPECT_NE(json.find(R"("ts": 1, "dur": 8, "name": "outer", "cat": "work"})"), json.npos) << json;
  EXPECT_NE(json.find(R"("ts": 3, "dur": 2, "name": "inner", "cat": "wait"})"), json.npos) << json;
  EXPECT_LT(json.find("outer"), json.find("inner"));
  EXPECT_NE(json.find(R"("thread_name", "args": {"name": "warp 0: load"})"), json.npos) << json;
}

TEST(Trace, an_end_without_begin_is_dropped_and_a_begin_without_end_ends_with_the_trace) {
  Tracer tracer;
  tracer.record(event(Kind::kEnd, 1, "", "work"));
  tracer.record(event(Kind::kBegin, 2, "stuck", "wait"));
  tracer.record(event(Kind::kEnd, 4, "", "work"));  // of another category: closes nothing
  tracer.record(event(Kind::kEnd, 8, "", "role"));
  const std::string json = tracer.to_chrome_json();
  EXPECT_EQ(count(json, R"("ph": "X")"), 1U) << json;
  EXPECT_NE(
      json.find(R"("ts": 2, "dur": 6, "name": "stuck", "cat": "wait", "args": {"unfinished")"),
      json.npos)
      << json;
}

TEST(Trace, an_outer_end_closes_what_was_left_open_inside) {
  Tracer tracer;
  tracer.record(event(Kind::kBegin, 1, "role", "role"));
  tracer.record(event(Kind::kBegin, 2, "work", "work"));
  tracer.record(event(Kind::kEnd, 6, "", "role"));
  tracer.record(event(Kind::kBegin, 7, "next", "work"));
  tracer.record(event(Kind::kEnd, 9, "", "work"));
  const std::string json = tracer.to_chrome_json();
  EXPECT_NE(json.find(R"("ts": 2, "dur": 4, "name": "work")"), json.npos) << json;
  EXPECT_NE(json.find(R"("ts": 1, "dur": 5, "name": "role")"), json.npos) << json;
  EXPECT_NE(json.find(R"("ts": 7, "dur": 2, "name": "next")"), json.npos) << json;
  EXPECT_EQ(count(json, "unfinished"), 1U) << json;
}

TEST(Trace, a_flow_has_both_ends_or_none) {
  Tracer tracer;
  TraceEvent start = event(Kind::kFlowStart, 1, "full[0]", "arrive");
  start.flow = 1;
  tracer.record(start);
  start.step = 3;
  start.flow = 2;  // no thread waited for this phase
  tracer.record(start);
  for (const uint32_t warp : {1U, 2U}) {  // two warps waited for the first
    TraceEvent end = event(Kind::kFlowEnd, 5 + warp, "", "");
    end.warp = warp;
    end.flow = 1;
    tracer.record(end);
  }
  TraceEvent lost = event(Kind::kFlowEnd, 9, "", "");
  lost.flow = 77;
  tracer.record(lost);
  const std::string json = tracer.to_chrome_json();
  EXPECT_EQ(count(json, R"("ph": "s")"), 2U) << json;
  EXPECT_EQ(count(json, R"("ph": "f")"), 2U) << json;
  EXPECT_EQ(count(json, R"("id": 1,)"), 2U) << json;
  EXPECT_EQ(count(json, R"("id": 2,)"), 2U) << json;
}

TEST(Trace, operations_that_overlap_get_tracks_of_their_own) {
  Tracer tracer;
  const auto operation = [&](uint64_t issued, uint64_t completed) {
    TraceEvent done = event(Kind::kOperation, completed, "tma_load", "async");
    done.operation = issued;
    done.details = issued == 1 ? "evict first" : "";
    tracer.record(done);
  };
  operation(2, 8);
  operation(1, 9);
  operation(10, 12);  // the first track is free again
  const std::string json = tracer.to_chrome_json();
  EXPECT_EQ(count(json, R"("name": "tma_load"}})"), 1U) << json;
  EXPECT_EQ(count(json, R"("name": "tma_load 2"}})"), 1U) << json;
  EXPECT_EQ(count(json, R"("tid": 1000, "ts")"), 2U) << json;
  EXPECT_NE(json.find(R"("tid": 1001, "ts": 2, "dur": 6)"), json.npos) << json;
  EXPECT_EQ(count(json, R"("details": "evict first")"), 1U) << json;
}

TEST(Trace, names_are_escaped) {
  Tracer tracer;
  tracer.record(event(Kind::kBegin, 1, "a \"b\" \\ \n", "work"));
  EXPECT_NE(tracer.to_chrome_json().find(R"("a \"b\" \\ \u000a")"), std::string::npos);
}

// CTA 0 sends a word to CTA 1, which waits for it.
struct Send {
  struct Params {
    arch::GlobalPtr<uint32_t> out;
  };
  struct Storage {
    SharedArray<uint64_t, 1> slot;
    MBarrier full;
  };
  static constexpr int kThreads = 32;
  static constexpr int kClusterSize = 2;
  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = shared_storage<Storage>();
    if (thread_idx() == 0) {
      name_barrier(storage.full, "full");
      storage.full.init(1);
      arch::fence_mbarrier_init();
      if (cluster_rank() == 1) storage.full.arrive_expect_tx(8);
    }
    cluster_sync();
    if (cluster_rank() == 0 && thread_idx() == 0) {
      const Role role("sender");
      store_async(map_shared(storage.slot.data(), 1), 42, storage.full, 1);
    }
    if (cluster_rank() == 1) {
      const Role role("receiver");
      storage.full.wait_cluster(0);
      store(params.out + thread_idx(), static_cast<uint32_t>(load(storage.slot.at(0))));
    }
    cluster_sync();
  }
};

TEST(Trace, an_operation_of_the_engine_flows_to_the_wait_that_it_ends) {
  std::vector<uint32_t> out(32);
  std::string first;
  for (int run = 0; run < 2; ++run) {
    Tracer tracer;
    const Result result = launch<Send>(shape_of<Send>("send", {2}), {out.data()},
                                       {output("out", out.data(), out.size())},
                                       {.mode = Mode::kLazy, .tracer = &tracer});
    ASSERT_TRUE(result.is_clean()) << to_string(result.reports[0]);
    EXPECT_EQ(out[31], 42U);
    const std::string json = tracer.to_chrome_json();
    EXPECT_EQ(count(json, R"("name": "store_async", "cat": "async")"), 1U) << json;
    EXPECT_EQ(count(json, R"("issued by": "warp 0, sender")"), 1U) << json;
    EXPECT_NE(json.find(R"("ph": "s", "pid": 0, "tid": 1000)"), json.npos) << json;
    EXPECT_NE(json.find(R"("ph": "f", "pid": 1, "tid": 0)"), json.npos) << json;
    EXPECT_EQ(count(json, R"("name": "receiver", "cat": "role"})"), 1U) << json;
    if (run == 0) first = json;
    EXPECT_EQ(first, json) << "the same run gives the same text";
  }
}

}  // namespace
}  // namespace pagoda::emulator
