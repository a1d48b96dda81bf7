// Small kernels, each with one bug that the emulator must name with its line, beside the same
// kernel without the bug, about which it must be silent in every mode over 100 seeds.
#include "emulator/machine/machine.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <vector>

#include "arch/cluster.hpp"
#include "arch/debug.hpp"
#include "arch/fence.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "emulator/machine/launch.hpp"

namespace pagoda::emulator {
namespace {

using namespace arch;

// One warp writes, another reads, through a pair of full and empty barriers with two stages.
struct Relay {
  enum class Bug {
    kNone,
    kNoWait,
    kNoRelease,
    kNoAcquire,
    kNoInitBarrier,
    kTooManyArrivals,
    kUnwritten
  };
  struct Params {
    arch::GlobalPtr<const uint32_t> in;
    arch::GlobalPtr<uint32_t> out;
    Bug bug = Bug::kNone;
  };
  struct Storage {
    SharedArray<uint32_t, 64> slot;  // [2 stages, 32 lanes]
    MBarrier full[2];
    MBarrier empty[2];
  };
  static constexpr int kThreads = 64;
  static constexpr int kItems = 6;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = shared_storage<Storage>();
    if (thread_idx() == 0) {
      for (int stage = 0; stage < 2; ++stage) {
        name_barrier(storage.full[stage], "full", stage);
        name_barrier(storage.empty[stage], "empty", stage);
        storage.full[stage].init(32);
        storage.empty[stage].init(32);
      }
    }
    if (params.bug != Bug::kNoInitBarrier) syncthreads();
    if (warp_idx() == 0) {
      const Role role("producer");
      for (int i = 0; i < kItems; ++i) {
        const int stage = i % 2;
        const uint32_t phase = static_cast<uint32_t>(i / 2) & 1U;
        if (params.bug != Bug::kNoAcquire) storage.empty[stage].wait(phase ^ 1U);
        if (params.bug != Bug::kUnwritten || i != 1 || lane_idx() != 7) {
          store(storage.slot.at(stage * 32 + lane_idx()), load(params.in + i * 32 + lane_idx()));
        }
        storage.full[stage].arrive();
        if (params.bug == Bug::kTooManyArrivals && i == 3) storage.full[stage].arrive(33);
      }
    } else {
      const Role role("consumer");
      for (int i = 0; i < kItems; ++i) {
        const int stage = i % 2;
        const uint32_t phase = static_cast<uint32_t>(i / 2) & 1U;
        if (params.bug != Bug::kNoWait) storage.full[stage].wait(phase);
        const uint32_t value = load(storage.slot.at(stage * 32 + 31 - lane_idx()));
        if (params.bug != Bug::kNoRelease) storage.empty[stage].arrive();
        store(params.out + i * 32 + lane_idx(), value);
      }
    }
  }
};

Result run_relay(Relay::Bug bug, Mode mode, uint64_t seed, bool* is_right = nullptr) {
  std::vector<uint32_t> in(Relay::kItems * 32);
  std::vector<uint32_t> out(in.size(), 0xdead);
  std::iota(in.begin(), in.end(), 1U);
  Result result =
      launch<Relay>(shape_of<Relay>("relay", {1}), {in.data(), out.data(), bug},
                    {input("in", in.data(), in.size()), output("out", out.data(), out.size())},
                    {.mode = mode, .seed = seed});
  if (is_right != nullptr) {
    *is_right = true;
    for (size_t i = 0; i < out.size(); ++i) {
      *is_right = *is_right && out[i] == in[i / 32 * 32 + 31 - i % 32];
    }
  }
  return result;
}

testing::AssertionResult reports(const Result& result, ReportKind kind, std::string_view text) {
  std::string all;
  for (const Report& report : result.reports) {
    if (report.kind == kind && to_string(report).find(text) != std::string::npos) {
      return testing::AssertionSuccess();
    }
    all += to_string(report) + "\n";
  }
  return testing::AssertionFailure() << "no " << name(kind) << " with '" << text << "' in:\n"
                                     << all;
}

TEST(Machine, correct_relay_is_silent_and_right_in_every_mode_over_100_seeds) {
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      bool is_right = false;
      const Result result = run_relay(Relay::Bug::kNone, mode, seed, &is_right);
      ASSERT_TRUE(result.is_clean()) << name(mode) << ' ' << seed << '\n'
                                     << to_string(result.reports[0]);
      ASSERT_TRUE(is_right) << name(mode) << ' ' << seed;
    }
  }
}

TEST(Machine, each_missing_synchronisation_is_reported_in_every_mode) {
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      EXPECT_TRUE(
          reports(run_relay(Relay::Bug::kNoWait, mode, seed), ReportKind::kRace, "role producer"));
      EXPECT_TRUE(reports(run_relay(Relay::Bug::kNoRelease, mode, seed), ReportKind::kDeadlock,
                          "mbarrier empty[0]: phase 0, still wants 32 of 32 arrivals"));
      EXPECT_TRUE(
          reports(run_relay(Relay::Bug::kNoAcquire, mode, seed), ReportKind::kRace, "role "));
      EXPECT_TRUE(reports(run_relay(Relay::Bug::kTooManyArrivals, mode, seed),
                          ReportKind::kProtocol, "full[1]"));
      EXPECT_TRUE(reports(run_relay(Relay::Bug::kUnwritten, mode, seed), ReportKind::kUninitialised,
                          "nothing wrote"));
      EXPECT_FALSE(run_relay(Relay::Bug::kNoInitBarrier, mode, seed).is_clean());
    }
  }
}

// A remote arrival is performed before the release of the cluster barrier that follows it.
struct RemoteArrival {
  struct Params {};
  struct Storage {
    MBarrier barrier;
  };
  static constexpr int kThreads = 32, kClusterSize = 2;
  static PAGODA_DEVICE void run(const Params&) {
    auto& storage = shared_storage<Storage>();
    if (thread_idx() == 0) {
      storage.barrier.init(1);
      arch::fence_mbarrier_init();
    }
    arch::cluster_sync();
    if (arch::cluster_rank() == 0 && thread_idx() == 0) storage.barrier.arrive_remote(1);
    arch::cluster_sync();
  }
};

TEST(Machine, a_remote_arrival_comes_before_the_cluster_barrier_after_it) {
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      const Result result = launch<RemoteArrival>(shape_of<RemoteArrival>("remote_arrival", {2}),
                                                  {}, {}, {.mode = mode, .seed = seed});
      ASSERT_TRUE(result.is_clean()) << name(mode) << ' ' << to_string(result.reports[0]);
    }
  }
}

// A kernel that does nothing, with as much shared memory as the launch asks for.
struct Nothing {
  struct Params {};
  struct Storage {};
  static constexpr int kThreads = 64;
  static PAGODA_DEVICE void run(const Params&) {}
};

TEST(Machine, more_shared_memory_than_gfx942_has_is_refused) {
  const auto run = [](int warp_size, size_t bytes) {
    LaunchShape shape = shape_of<Nothing>("nothing", {1});
    shape.warp_size = warp_size;
    shape.shared_bytes = bytes;
    return launch<Nothing>(shape, {}, {});
  };
  EXPECT_TRUE(reports(run(64, 65537), ReportKind::kBounds,
                      "65537 bytes of shared memory; gfx942 has 65536"));
  EXPECT_TRUE(run(64, 65536).is_clean());
  EXPECT_TRUE(run(32, 65537).is_clean()) << "NVIDIA GPUs have more";
}

}  // namespace
}  // namespace pagoda::emulator
