// Waves of 64 lanes: indices, shuffles, votes, syncwarp and syncthreads of four waves.
#include <array>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "emulator/machine/launch.hpp"
#include "testing/material/expect_report.hpp"

namespace pagoda {
namespace {

using namespace arch;
using namespace emulator;

constexpr int kWaves = 4, kThreadsOfWaves = 64 * kWaves;

struct WaveStorage {
  SharedArray<uint32_t, kThreadsOfWaves> words;
};
using Body = std::function<uint32_t(WaveStorage&)>;

// The body's result in every thread.
struct WaveKernel {
  struct Params {
    const Body* body;
    arch::GlobalPtr<uint32_t> out;  // [kThreads]
  };
  using Storage = WaveStorage;
  static constexpr int kThreads = kThreadsOfWaves, kWarpSize = 64;
  static PAGODA_DEVICE void run(const Params& params) {
    const uint32_t result = (*params.body)(shared_storage<Storage>());
    store(params.out + thread_idx(), result);
  }
};

Result run_waves(const Body& body, std::vector<uint32_t>& out, const Options& options) {
  out.assign(kThreadsOfWaves, 0xdead);
  return launch<WaveKernel>(shape_of<WaveKernel>("waves", {1}), {&body, out.data()},
                            {output("out", out.data(), out.size())}, options);
}
// expected(wave, lane), in every mode.
void expect_results(const Body& body, const std::function<uint32_t(int, int)>& expected) {
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      std::vector<uint32_t> out;
      ASSERT_EQ(all_reports(run_waves(body, out, {.mode = mode, .seed = seed})), "");
      for (int thread = 0; thread < kThreadsOfWaves; ++thread) {
        ASSERT_EQ(out[static_cast<size_t>(thread)], expected(thread / 64, thread % 64))
            << name(mode) << ", thread " << thread;
      }
    }
  }
}
uint32_t own() { return 1000 + static_cast<uint32_t>(thread_idx()); }
uint32_t of(int wave, int lane) { return static_cast<uint32_t>(1000 + 64 * wave + lane); }

TEST(Wave, indices_count_64_lanes) {
  expect_results([](WaveStorage&) { return static_cast<uint32_t>(warp_idx() * 100 + lane_idx()); },
                 [](int wave, int lane) { return static_cast<uint32_t>(wave * 100 + lane); });
}

TEST(Wave, one_lane_of_64_is_elected) {
  expect_results([](WaveStorage&) { return static_cast<uint32_t>(elect_one()); },
                 [](int, int lane) { return lane == 0 ? 1U : 0U; });
}

TEST(Wave, shuffle_reads_any_lane_of_64) {
  for (const int from : {0, 31, 32, 63}) {
    expect_results([from](WaveStorage&) { return shuffle(own(), from); },
                   [from](int wave, int) { return of(wave, from); });
  }
  // Another in each lane.
  expect_results([](WaveStorage&) { return shuffle(own(), 63 - lane_idx()); },
                 [](int wave, int lane) { return of(wave, 63 - lane); });
}

TEST(Wave, shuffle_xor_crosses_the_halves) {
  for (const int mask : {1, 16, 32, 63}) {
    expect_results([mask](WaveStorage&) { return shuffle_xor(own(), mask); },
                   [mask](int wave, int lane) { return of(wave, lane ^ mask); });
  }
}

TEST(Wave, shuffle_up_moves_over_64_lanes) {
  for (const int delta : {1, 16, 32, 63}) {  // lanes below keep their own
    expect_results(
        [delta](WaveStorage&) { return shuffle_up(own(), delta); },
        [delta](int wave, int lane) { return of(wave, lane < delta ? lane : lane - delta); });
  }
}

TEST(Wave, votes_are_of_64_lanes) {
  for (const int voter : {0, 31, 32, 63}) {
    // Lane `voter` of wave 1 alone, and all but that lane.
    expect_results([voter](WaveStorage&) { return any(thread_idx() == 64 + voter) ? 1U : 0U; },
                   [](int wave, int) { return wave == 1 ? 1U : 0U; });
    expect_results([voter](WaveStorage&) { return all(thread_idx() != 64 + voter) ? 1U : 0U; },
                   [](int wave, int) { return wave == 1 ? 0U : 1U; });
  }
}

TEST(Wave, reduce_add_sums_64_lanes) {
  expect_results(
      [](WaveStorage&) { return reduce_add(own()); },
      [](int wave, int) { return static_cast<uint32_t>(64 * (1000 + 64 * wave) + 2016); });
}

TEST(Wave, ballot_has_a_bit_for_each_of_64_lanes) {
  for (const int voter : {0, 31, 32, 63}) {
    const auto bits = [voter](int shift) {
      return [voter, shift](WaveStorage&) {
        const uint64_t votes = ballot(thread_idx() == 64 + voter);
        return static_cast<uint32_t>(votes >> shift);
      };
    };
    const uint64_t expected = uint64_t{1} << voter;
    expect_results(bits(0),
                   [&](int wave, int) { return wave == 1 ? static_cast<uint32_t>(expected) : 0U; });
    expect_results(bits(32), [&](int wave, int) {
      return wave == 1 ? static_cast<uint32_t>(expected >> 32) : 0U;
    });
  }
}

TEST(Wave, syncwarp_orders_the_lanes_of_both_halves) {
  const auto body = [](bool is_correct) {
    return [is_correct](WaveStorage& storage) {
      store(storage.words.at(thread_idx()), own());
      if (is_correct) syncwarp();
      return load(storage.words.at(thread_idx() / 64 * 64 + 63 - lane_idx()));
    };
  };
  expect_results(body(true), [](int wave, int lane) { return of(wave, 63 - lane); });
  std::vector<uint32_t> out;
  EXPECT_FALSE(run_waves(body(false), out, {}).is_clean());
}

TEST(Wave, syncthreads_is_a_barrier_of_four_waves) {
  const auto body = [](bool is_correct) {
    return [is_correct](WaveStorage& storage) {
      store(storage.words.at(thread_idx()), own());
      if (is_correct) {
        syncthreads();
      } else {
        syncwarp();
      }
      return load(storage.words.at(kThreadsOfWaves - 1 - thread_idx()));
    };
  };
  expect_results(body(true), [](int wave, int lane) { return of(kWaves - 1 - wave, 63 - lane); });
  std::vector<uint32_t> out;
  EXPECT_FALSE(run_waves(body(false), out, {}).is_clean());
}

TEST(Wave, a_wave_that_skips_the_barrier_is_a_deadlock) {
  std::vector<uint32_t> out;
  uint32_t line = 0;
  const Body body = [&line](WaveStorage&) {
    line = __LINE__ + 1;
    if (thread_idx() / 64 != 2) syncthreads();
    return 0U;
  };
  for (const Mode mode : kModes) {
    const Result result = run_waves(body, out, {.mode = mode});
    EXPECT_EQ(missing_report(result, ReportKind::kDeadlock, line, "named barrier 0"), "");
  }
}

}  // namespace
}  // namespace pagoda
