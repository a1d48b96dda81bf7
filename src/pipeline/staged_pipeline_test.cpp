// StagedPipeline on the emulator: a ring of three stages with two parts each, passed over several
// times. Kernels that leave out one of its calls must be reported.
#include "pipeline/staged_pipeline.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <vector>

#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "emulator/machine/launch.hpp"
#include "testing/material/expect_report.hpp"

namespace pagoda::pipeline {
namespace {

using emulator::ReportKind;

enum class Bug : uint8_t {
  kNone,
  kNoAcquire,       // the producer overwrites a stage that is in use
  kNoConsumerWait,  // the consumers read a part before it is full
  kEarlyRelease,    // the consumers release a part before they have read it
  kNoRelease,       // of part 1
  kNoDrain,         // the ring's memory is reused while it is in use
  kWrongPart,       // the producer fills part 0 twice
};

// Warp 0 stores tiles of two parts; warps 1 and 2 copy them to `out`.
template <Bug bug>
struct Relay {
  static constexpr int kStages = 3, kParts = 2, kConsumerWarps = 2, kTiles = 8;
  using Pipeline = StagedPipeline<kStages, kParts>;
  struct Params {
    arch::GlobalPtr<uint32_t> out;  // [tiles][parts][2 warps][32]
  };
  struct Storage {
    arch::SharedArray<uint32_t, kStages * kParts * 32> ring;
    arch::MBarrier mbar[Pipeline::num_mbars];
  };
  static constexpr int kThreads = 96;

  static uint32_t value(int tile, int part, int lane) {
    return static_cast<uint32_t>(1 + (tile * kParts + part) * 32 + lane);
  }
  static arch::SharedPtr<uint32_t> slot(Storage& storage, const Pipeline& ring, int part) {
    return storage.ring.at((static_cast<int32_t>(ring.state.index) * kParts + part) * 32 +
                           arch::lane_idx());
  }

  static constexpr int part_unless(Bug wrong, int part) { return bug == wrong ? 0 : part; }

  template <int part>
  static void produce(Storage& storage, const Pipeline& ring, int tile) {
    if constexpr (bug != Bug::kNoAcquire) ring.template producer_acquire<part>();
    arch::store(slot(storage, ring, part), value(tile, part, arch::lane_idx()));
    ring.template producer_mbar<part_unless(Bug::kWrongPart, part)>().arrive();
  }
  template <int part>
  static void consume(Storage& storage, Pipeline& ring, const Params& params, int tile) {
    if constexpr (bug != Bug::kNoConsumerWait) ring.template consumer_wait<part>();
    const auto from = slot(storage, ring, part);
    const auto release = [&] {
      arch::syncwarp();
      if constexpr (bug == Bug::kNoRelease && part == 1) {
        ring.step();
      } else {
        ring.template consumer_release<part>(arch::elect_one());
      }
    };
    if constexpr (bug == Bug::kEarlyRelease) release();
    const int32_t warp = arch::warp_idx() - 1;
    arch::store(
        params.out + ((tile * kParts + part) * kConsumerWarps + warp) * 32 + arch::lane_idx(),
        arch::load(from));
    if constexpr (bug != Bug::kEarlyRelease) release();
  }

  static void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    if (arch::thread_idx() == 0) {
      Pipeline::init(storage.mbar, kConsumerWarps, "ring", arch::Where::current(), 32);
    }
    arch::syncthreads();
    if (arch::warp_idx() == 0) {
      auto ring = Pipeline::producer(storage.mbar);
      for (int tile = 0; tile < kTiles; ++tile) {
        produce<0>(storage, ring, tile);
        produce<1>(storage, ring, tile);
        ring.step();
      }
      if constexpr (bug != Bug::kNoDrain) ring.producer_drain();
      for (int i = 0; i < kStages * kParts; ++i) {
        arch::store(storage.ring.at(i * 32 + arch::lane_idx()), 0U);
      }
    } else {
      auto ring = Pipeline::consumer(storage.mbar);
      for (int tile = 0; tile < kTiles; ++tile) {
        consume<0>(storage, ring, params, tile);
        consume<1>(storage, ring, params, tile);
      }
    }
  }
};

template <Bug bug>
emulator::Result relay(std::vector<uint32_t>& out, emulator::Mode mode, uint64_t seed) {
  using Kernel = Relay<bug>;
  out.assign(Kernel::kTiles * Kernel::kParts * Kernel::kConsumerWarps * 32, 0);
  return emulator::launch<Kernel>(emulator::shape_of<Kernel>("relay", {1}), {out.data()},
                                  {emulator::output("out", out.data(), out.size())},
                                  {.mode = mode, .seed = seed});
}
template <Bug bug>
emulator::Result relay(emulator::Mode mode, uint64_t seed) {
  std::vector<uint32_t> out;
  return relay<bug>(out, mode, seed);
}

TEST(StagedPipeline, every_part_of_every_tile_arrives_in_order) {
  using Kernel = Relay<Bug::kNone>;
  for (const emulator::Mode mode : emulator::kModes) {
    for (uint64_t seed = 1; seed <= 25; ++seed) {
      std::vector<uint32_t> out;
      const emulator::Result result = relay<Bug::kNone>(out, mode, seed);
      ASSERT_TRUE(result.is_clean()) << emulator::all_reports(result);
      for (size_t i = 0; i < out.size(); ++i) {
        const auto part = static_cast<int>(i / (Kernel::kConsumerWarps * 32));
        ASSERT_EQ(out[i], Kernel::value(part / 2, part % 2, static_cast<int>(i % 32))) << i;
      }
    }
  }
}

TEST(StagedPipeline, a_missing_acquire_is_a_race) {
  EXPECT_EQ(emulator::missing_report(relay<Bug::kNoAcquire>, ReportKind::kRace, "shared memory"),
            "");
}
TEST(StagedPipeline, a_missing_wait_is_a_race_or_an_unwritten_read) {
  for (const emulator::Mode mode : emulator::kModes) {
    EXPECT_FALSE(relay<Bug::kNoConsumerWait>(mode, 1).is_clean()) << emulator::name(mode);
  }
}
TEST(StagedPipeline, an_early_release_is_a_race) {
  EXPECT_EQ(emulator::missing_report(relay<Bug::kEarlyRelease>, ReportKind::kRace, "shared memory"),
            "");
}
TEST(StagedPipeline, a_part_that_is_never_released_is_a_deadlock) {
  EXPECT_EQ(
      emulator::missing_report(relay<Bug::kNoRelease>, ReportKind::kDeadlock, "ring empty[1]"), "");
}
TEST(StagedPipeline, reuse_without_drain_is_a_race) {
  EXPECT_EQ(emulator::missing_report(relay<Bug::kNoDrain>, ReportKind::kRace, "shared memory"), "");
}
TEST(StagedPipeline, a_part_that_is_never_filled_is_a_deadlock_or_an_over_arrival) {
  for (const emulator::Mode mode : emulator::kModes) {
    EXPECT_FALSE(relay<Bug::kWrongPart>(mode, 1).is_clean()) << emulator::name(mode);
  }
}

}  // namespace
}  // namespace pagoda::pipeline
