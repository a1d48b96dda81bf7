// Barriers of AMD GPUs: s_barrier waits for no access of its own wave. A mutant without the
// s_waitcnt before it is reported, the kernel as it is is silent.
#include <cstdint>
#include <gtest/gtest.h>
#include <string_view>
#include <utility>
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

enum class Step {
  kReadAfterWrite,  // what the other wave stored
  kWriteAfterRead,  // what the other wave loads
  kSyncwarp,        // stored before a syncwarp of its wave
  kEarlierWait,     // stored before the barrier before
};

// Two waves; each thread accesses a word of its own and one of the other wave, around the barrier
// under test.
struct BarrierKernel {
  struct Params {
    Step step;
    arch::GlobalPtr<uint32_t> out;  // [kThreads]
  };
  struct Storage {
    SharedArray<uint32_t, 128> words;
  };
  static constexpr int kThreads = 128, kWarpSize = 64;
  static inline uint32_t barrier_line, access_line;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = shared_storage<Storage>();
    const SharedPtr<uint32_t> mine = storage.words.at(thread_idx());
    const SharedPtr<uint32_t> other = storage.words.at(127 - thread_idx());
    store(mine, static_cast<uint32_t>(thread_idx()));
    uint32_t value = 0;
    if (params.step == Step::kWriteAfterRead || params.step == Step::kEarlierWait) syncthreads();
    if (params.step == Step::kWriteAfterRead) value = load(other);
    if (params.step == Step::kSyncwarp) syncwarp();
    barrier_line = __LINE__ + 1;
    syncthreads();
    if (params.step == Step::kWriteAfterRead) {
      access_line = __LINE__ + 1;
      store(mine, 5U);
    } else {
      access_line = __LINE__ + 1;
      value = load(other);
    }
    store(params.out + thread_idx(), value);
  }
};

// The run, and whether every thread has the word of the other wave.
std::pair<Result, bool> run(Step step, const Options& options, int warp_size = 64) {
  std::vector<uint32_t> out(128, 0xdead);
  LaunchShape shape = shape_of<BarrierKernel>("barrier", {1});
  shape.warp_size = warp_size;
  Result result = launch<BarrierKernel>(shape, {step, out.data()},
                                        {output("out", out.data(), out.size())}, options);
  bool is_right = true;
  for (size_t i = 0; i < 128; ++i) is_right = is_right && out[i] == 127 - i;
  return {std::move(result), is_right};
}

// Without mutant: silent in every mode over 100 seeds.
void expect_silent(Step step) {
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      const auto [result, is_right] = run(step, {.mode = mode, .seed = seed});
      ASSERT_EQ(all_reports(result), "") << name(mode) << ' ' << seed;
      ASSERT_TRUE(is_right);
    }
  }
}
// The site of `primitive` at the barrier under test; -1: there is none.
int site_of(const MutationSites& sites, std::string_view primitive) {
  for (size_t i = 0; i < sites.sites().size(); ++i) {
    const MutationSite& site = sites.sites()[i];
    if (site.primitive == primitive && site.line == BarrierKernel::barrier_line) {
      return static_cast<int>(i);
    }
  }
  return -1;
}
// Runs of a mutant without `primitive`, in every mode with 5 seeds.
template <class Check>
void for_each_mutant(Step step, std::string_view primitive, Check check) {
  MutationSites sites;
  run(step, {.mutation = &sites});
  const int site = site_of(sites, primitive);
  ASSERT_GE(site, 0);
  EXPECT_EQ(sites.sites()[static_cast<size_t>(site)].executions, 128U);
  sites.drop(site);
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      check(run(step, {.mode = mode, .seed = seed, .mutation = &sites}).first);
    }
  }
}
void expect_race_without(std::string_view primitive, Step step, std::string_view text) {
  for_each_mutant(step, primitive, [&](const Result& result) {
    EXPECT_EQ(missing_report(result, ReportKind::kRace, BarrierKernel::access_line, text), "");
  });
}

TEST(AmdBarrier, a_store_without_a_wait_before_the_barrier_is_a_race) {
  expect_race_without("s_waitcnt", Step::kReadAfterWrite,
                      "is not ordered after the write by store");
  expect_silent(Step::kReadAfterWrite);
}

TEST(AmdBarrier, a_load_without_a_wait_before_the_barrier_is_a_race) {
  expect_race_without("s_waitcnt", Step::kWriteAfterRead, "is not ordered after the read by load");
  expect_silent(Step::kWriteAfterRead);
}

TEST(AmdBarrier, a_wait_without_the_barrier_is_a_race) {
  expect_race_without("syncthreads", Step::kReadAfterWrite, "is not ordered after the write by");
  expect_race_without("syncthreads", Step::kWriteAfterRead, "is not ordered after the");
}

TEST(AmdBarrier, syncwarp_is_no_wait_for_the_lanes_of_the_wave) {
  expect_race_without("s_waitcnt", Step::kSyncwarp, "is not ordered after the write by store");
  expect_silent(Step::kSyncwarp);
}

TEST(AmdBarrier, what_an_earlier_wait_completed_needs_no_other) {
  for_each_mutant(Step::kEarlierWait, "s_waitcnt",
                  [](const Result& result) { EXPECT_EQ(all_reports(result), ""); });
}

TEST(AmdBarrier, a_machine_of_warps_of_32_lanes_has_no_wait_to_leave_out) {
  MutationSites sites;
  const auto [result, is_right] = run(Step::kReadAfterWrite, {.mutation = &sites}, 32);
  EXPECT_TRUE(result.is_clean() && is_right);
  EXPECT_EQ(site_of(sites, "s_waitcnt"), -1);
  EXPECT_GE(site_of(sites, "syncthreads"), 0);
}

}  // namespace
}  // namespace pagoda
