// MBarPipeline on the emulator: a ring of two results between two warps, passed over several times.
// Kernels that leave out one of its calls must be reported.
#include "pipeline/mbar_pipeline.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "emulator/machine/launch.hpp"
#include "testing/material/expect_report.hpp"

namespace pagoda::pipeline {
namespace {

using emulator::ReportKind;

enum class Bug : uint8_t {
  kNone,
  kNoAcquire,  // the producer overwrites a result that is in use
  kNoWait,     // the consumer reads a result before it is complete
  kNoCommit,   // the producer steps without an arrival
  kNoRelease,  // the consumer steps without an arrival
};

// Every lane of warp 0 sends results to the same lane of warp 1.
template <int stages, Bug bug>
struct Results {
  static constexpr int kResults = 9;
  using Pipeline = MBarPipeline<stages>;
  struct Params {
    arch::GlobalPtr<uint32_t> out;  // [kResults][32]
  };
  struct Storage {
    arch::SharedArray<uint32_t, stages * 32> slots;
    arch::MBarrier mbar[Pipeline::num_mbars];
  };
  static constexpr int kThreads = 64;

  static void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    if (arch::thread_idx() == 0) Pipeline::init(storage.mbar, 32, 32, "result");
    arch::syncthreads();
    const bool is_producer = arch::warp_idx() == 0;
    auto ring = is_producer ? Pipeline::producer(storage.mbar) : Pipeline::consumer(storage.mbar);
    for (int i = 0; i < kResults; ++i) {
      const auto slot =
          storage.slots.at(static_cast<int32_t>(ring.state.index) * 32 + 31 - arch::lane_idx());
      if (is_producer) {
        if constexpr (bug != Bug::kNoAcquire) ring.producer_acquire();
        arch::store(slot, static_cast<uint32_t>(1 + i * 32 + arch::lane_idx()));
        bug == Bug::kNoCommit ? ring.step() : ring.producer_commit();
      } else {
        if constexpr (bug != Bug::kNoWait) ring.consumer_wait();
        arch::store(params.out + i * 32 + arch::lane_idx(), arch::load(slot));
        bug == Bug::kNoRelease ? ring.step() : ring.consumer_release();
      }
    }
  }
};

template <int stages, Bug bug>
emulator::Result send(std::vector<uint32_t>& out, emulator::Mode mode, uint64_t seed) {
  using Kernel = Results<stages, bug>;
  out.assign(Kernel::kResults * 32, 0);
  return emulator::launch<Kernel>(emulator::shape_of<Kernel>("results", {1}), {out.data()},
                                  {emulator::output("out", out.data(), out.size())},
                                  {.mode = mode, .seed = seed});
}
template <Bug bug>
emulator::Result send(emulator::Mode mode, uint64_t seed) {
  std::vector<uint32_t> out;
  return send<2, bug>(out, mode, seed);
}

template <int stages>
void expect_all_results() {
  for (const emulator::Mode mode : emulator::kModes) {
    for (uint64_t seed = 1; seed <= 25; ++seed) {
      std::vector<uint32_t> out;
      const emulator::Result result = send<stages, Bug::kNone>(out, mode, seed);
      ASSERT_TRUE(result.is_clean()) << emulator::all_reports(result);
      for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], i + 1);
    }
  }
}

TEST(MBarPipeline, every_result_arrives_in_order) {
  expect_all_results<1>();
  expect_all_results<2>();
  expect_all_results<3>();
}

TEST(MBarPipeline, a_missing_acquire_is_a_race) {
  EXPECT_EQ(emulator::missing_report(send<Bug::kNoAcquire>, ReportKind::kRace, "shared memory"),
            "");
}
TEST(MBarPipeline, a_missing_wait_is_reported) {
  for (const emulator::Mode mode : emulator::kModes) {
    EXPECT_FALSE(send<Bug::kNoWait>(mode, 1).is_clean()) << emulator::name(mode);
  }
}
TEST(MBarPipeline, a_missing_commit_is_a_deadlock) {
  EXPECT_EQ(emulator::missing_report(send<Bug::kNoCommit>, ReportKind::kDeadlock, "result full[0]"),
            "");
}
TEST(MBarPipeline, a_missing_release_is_a_deadlock) {
  EXPECT_EQ(
      emulator::missing_report(send<Bug::kNoRelease>, ReportKind::kDeadlock, "result empty[0]"),
      "");
}

}  // namespace
}  // namespace pagoda::pipeline
