// Whole replays of a few small requests on the reference back end: every phase is checked, the same
// seed gives the same run, and a cancelled run reports what it completed.
#include "cli/replay/session.hpp"

#include <gtest/gtest.h>

#include "cli/replay/replay_flags.hpp"
#include "testing/mirror/fake_device.hpp"

namespace pagoda::replay {
namespace {

Trace make_trace() {
  Trace trace;
  for (int64_t i = 0; i < 6; ++i) {
    TraceRequest request;
    request.timestamp_ms = 1000 + 5 * i;
    request.input_length = 520 + 10 * i;
    request.output_length = 120;
    request.hash_ids = {static_cast<uint64_t>(i % 2), static_cast<uint64_t>(10 + i)};
    trace.requests.push_back(request);
  }
  return trace;
}

SessionConfig make_config() {
  SessionConfig config;
  config.stack.model = {.name = "tiny",
                        .num_q_heads = 2,
                        .num_kv_heads = 1,
                        .head_dim = 8,
                        .num_layers = 2,
                        .window = 40,
                        .has_sinks = true};
  config.stack.num_layers = 2;
  config.stack.page_size = config.limits.page_size = 16;
  config.stack.num_pages = 74;  // two requests and a little: the cache overflows
  config.stack.options.backend = "reference";
  config.limits.token_budget = 64;
  return config;
}

Metrics replay(const SessionConfig& config, const Trace& trace, int64_t steps_until_cancel = -1) {
  Session session(config, trace);
  int64_t steps = 0;
  const Status status = session.run(
      [&](const SessionProgress& p) {
        ++steps;
        EXPECT_GE(p.done_share, 0);
        EXPECT_LE(p.done_share, 1);
      },
      [&] { return steps == steps_until_cancel; });
  EXPECT_TRUE(status.ok()) << status.message();
  return session.metrics();
}

TEST(Session, serves_every_request_and_finds_no_mismatch_in_any_phase) {
  for (const auto& [dtype, kv_dtype] :
       {std::pair{DType::kF32, DType::kF32}, std::pair{DType::kF16, DType::kF16},
        std::pair{DType::kBF16, DType::kBF16}, std::pair{DType::kBF16, DType::kF8E4M3}}) {
    SessionConfig config = make_config();
    config.stack.dtype = dtype;
    config.stack.kv_dtype = kv_dtype;
    const Metrics metrics = replay(config, make_trace());
    EXPECT_EQ(metrics.completed(), 6);
    EXPECT_EQ(metrics.output_tokens, 6 * 120);
    EXPECT_EQ(metrics.mismatches, 0) << metrics.first_mismatches[0].what;
    EXPECT_GT(metrics.preemptions, 0);
    EXPECT_GT(metrics.reused_tokens, 0);
    for (int phase = 0; phase < kNumPhases; ++phase) {
      EXPECT_GT(metrics.checked_rows[static_cast<size_t>(phase)], 0)
          << name(static_cast<Phase>(phase)) << " " << name(kv_dtype);
    }
  }
}

// On the fake device, whose memory the host can't access.
TEST(Session, a_device_serves_what_the_host_serves) {
  ASSERT_TRUE(mirror::register_fake_device());
  for (const DType kv_dtype : {DType::kBF16, DType::kF8E4M3}) {
    SessionConfig config = make_config();
    config.stack.kv_dtype = kv_dtype;
    const Metrics host = replay(config, make_trace());
    config.stack.options.backend = mirror::kFakeDevice;
    config.stack.options.checks_indices = true;
    const Metrics device = replay(config, make_trace());
    EXPECT_EQ(device.kernel, "fake.reference");
    EXPECT_EQ(device.completed(), 6);
    EXPECT_EQ(device.mismatches, 0) << device.first_mismatches[0].what;
    EXPECT_EQ(device.total_checked_rows(), host.total_checked_rows());
    EXPECT_EQ(device.cost.flops, host.cost.flops);
    EXPECT_EQ(device.cost.bytes, host.cost.bytes);
    EXPECT_EQ(device.clock_seconds, host.clock_seconds);
  }
}

TEST(Session, a_row_that_a_device_leaves_out_is_a_mismatch) {
  ASSERT_TRUE(mirror::register_fake_device());
  mirror::set_fake_fault([](const core::Problem& p, int64_t) {
    for (int32_t h = 0; h < p.num_q_heads; ++h) {
      static_cast<float*>(p.lse.data)[p.row_offset(p.lse, 0, 0, h)] = 0;
    }
  });
  SessionConfig config = make_config();
  config.stack.options.backend = mirror::kFakeDevice;
  const Metrics metrics = replay(config, make_trace());
  mirror::set_fake_fault({});
  EXPECT_GT(metrics.mismatches, 0);
}

TEST(Session, the_virtual_clock_makes_a_run_repeatable) {
  const Metrics a = replay(make_config(), make_trace());
  const Metrics b = replay(make_config(), make_trace());
  EXPECT_EQ(a.checksum, b.checksum);
  EXPECT_EQ(a.clock_seconds, b.clock_seconds);
  EXPECT_EQ(a.steps.size(), b.steps.size());
  SessionConfig other = make_config();
  other.seed = 2;
  EXPECT_NE(replay(other, make_trace()).checksum, a.checksum);
}

TEST(Session, a_request_larger_than_the_cache_is_rejected_and_the_others_are_served) {
  Trace trace = make_trace();
  trace.requests[2].input_length = 2000;
  trace.requests[2].hash_ids = {1, 2, 3, 4};
  const Metrics metrics = replay(make_config(), trace);
  EXPECT_EQ(metrics.rejected.size(), 1U);
  EXPECT_EQ(metrics.completed(), 5);
}

TEST(Session, a_cancelled_run_keeps_what_it_found_out) {
  const Metrics metrics = replay(make_config(), make_trace(), 5);
  EXPECT_TRUE(metrics.was_interrupted);
  EXPECT_EQ(metrics.steps.size(), 5U);
  EXPECT_GT(metrics.total_checked_rows(), 0);
  EXPECT_LT(metrics.completed(), 6);
}

TEST(Session, every_clock_serves_all) {
  for (const ClockKind clock : {ClockKind::kVirtual, ClockKind::kMeasured, ClockKind::kWall}) {
    SessionConfig config = make_config();
    config.clock = clock;
    const Metrics metrics = replay(config, make_trace());
    EXPECT_EQ(metrics.completed(), 6);
    EXPECT_GE(metrics.clock_seconds, 0.025) << "the last arrival";
    EXPECT_GE(metrics.ttft().p50, 0);
  }
}

TEST(Session, an_empty_trace_ends_at_once) {
  EXPECT_EQ(replay(make_config(), Trace{}).completed(), 0);
}

// The virtual clock models a host of 250 GFLOP/s, which says nothing about a GPU.
TEST(Flags, a_gpu_s_clock_is_measured_unless_stated) {
  ASSERT_TRUE(mirror::register_fake_device());
  const auto clock_of = [](const std::string& backend, const std::string& stated) {
    ReplayFlags flags;
    flags.clock = stated;
    return make_session_config(flags, {.backend = backend})->clock;
  };
  EXPECT_EQ(clock_of("cpu", ""), ClockKind::kVirtual);
  EXPECT_EQ(clock_of(mirror::kFakeDevice, ""), ClockKind::kMeasured);
  EXPECT_EQ(clock_of(mirror::kFakeDevice, "virtual"), ClockKind::kVirtual);
}

}  // namespace
}  // namespace pagoda::replay
