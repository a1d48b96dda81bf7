// Tests of the pinned executor: every index once, whatever the sizes, and the affinity afterwards.
#include "bench/pinned_pool.hpp"

#include <array>
#include <atomic>
#include <gtest/gtest.h>
#include <sched.h>

namespace pagoda::bench {
namespace {

int cpus_of_this_thread() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  return CPU_COUNT(&set);
}

TEST(PinnedPool, every_index_runs_once_in_every_region) {
  constexpr int32_t kWorkers = 3;  // may be more than there are CPUs
  PinnedPool pool(kWorkers);
  EXPECT_EQ(pool.workers(), kWorkers);
  for (int32_t region = 0; region < 300; ++region) {
    const int32_t n = region % (kWorkers + 1);
    std::array<std::atomic<int>, kWorkers> calls{};
    pool.parallel(
        n,
        [](void* context, int32_t i) {
          ++(*static_cast<std::array<std::atomic<int>, kWorkers>*>(
              context))[static_cast<size_t>(i)];
        },
        &calls);
    for (int32_t i = 0; i < kWorkers; ++i) {
      ASSERT_EQ(calls[static_cast<size_t>(i)].load(), i < n ? 1 : 0) << "region " << region;
    }
  }
}

TEST(PinnedPool, pins_the_caller_and_frees_it_again) {
  const int before = cpus_of_this_thread();
  {
    const PinnedPool outer(1);
    const PinnedPool inner(2);  // finds the caller pinned, and still knows every CPU
    EXPECT_EQ(cpus_of_this_thread(), 1);
    EXPECT_EQ(static_cast<int>(allowed_cpus().size()), before);
  }
  EXPECT_EQ(cpus_of_this_thread(), before);
}

}  // namespace
}  // namespace pagoda::bench
