// Dependent launches: what a thread does before grid_dependency_wait must not touch global memory.
#include "arch/grid_dependency.hpp"

#include <array>
#include <cstdint>
#include <gtest/gtest.h>

#include "arch/bulk_copy.hpp"
#include "arch/fence.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "emulator/machine/launch.hpp"
#include "testing/material/expect_report.hpp"

namespace pagoda {
namespace {

using namespace arch;
using namespace emulator;

enum class Early { kNothing, kLoad, kStore, kCopy };

constexpr int kCount = 32;

template <bool is_dependent>
struct Doubles {
  struct Params {
    arch::GlobalPtr<const uint32_t> in;
    arch::GlobalPtr<uint32_t> out;
    Early early;
  };
  struct Storage {
    SharedArray<uint32_t, kCount, 128> values;
    MBarrier full;
  };
  static constexpr int kThreads = 32;
  static constexpr bool kIsDependent = is_dependent;
  static inline uint32_t line;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = shared_storage<Storage>();
    const int i = thread_idx();
    if (i == 0) {
      storage.full.init(1);
      fence_mbarrier_init();
      storage.full.arrive_expect_tx(kCount * 4);
    }
    syncthreads();
    line = __LINE__ + 1;
    if (params.early == Early::kLoad) static_cast<void>(load(params.in + i));
    if (params.early == Early::kStore) store(params.out + i, 7U);
    if (params.early == Early::kCopy && i == 0) copy(params, storage);
    grid_dependency_wait();
    if (params.early != Early::kCopy && i == 0) copy(params, storage);
    storage.full.wait(0);
    store(params.out + i, 2 * load(storage.values.at(i)));
  }
  static PAGODA_DEVICE void copy(const Params& params, Storage& storage) {
    bulk_load(1, storage.values.data(), params.in, kCount * 4, storage.full);
  }
};

template <bool is_dependent>
Result run(Early early, std::array<uint32_t, kCount>& out) {
  using Kernel = Doubles<is_dependent>;
  alignas(16) std::array<uint32_t, kCount> in;
  for (uint32_t i = 0; i < kCount; ++i) in[i] = 5 * i;
  return launch<Kernel>(shape_of<Kernel>("doubles", {1}), {in.data(), out.data(), early},
                        {inout("in", in.data(), kCount), inout("out", out.data(), kCount)});
}

TEST(DependentLaunch, touches_global_memory_after_its_wait) {
  std::array<uint32_t, kCount> out{};
  EXPECT_EQ(all_reports(run<true>(Early::kNothing, out)), "");
  for (uint32_t i = 0; i < kCount; ++i) EXPECT_EQ(out[i], 10 * i);
}

TEST(DependentLaunch, is_told_of_everything_that_comes_before) {
  using Kernel = Doubles<true>;
  std::array<uint32_t, kCount> out{};
  EXPECT_EQ(missing_report(run<true>(Early::kLoad, out), ReportKind::kProtocol, Kernel::line,
                           "read of buffer in before grid_dependency_wait"),
            "");
  EXPECT_EQ(missing_report(run<true>(Early::kStore, out), ReportKind::kProtocol, Kernel::line + 1,
                           "write to buffer out before grid_dependency_wait"),
            "");
  const Result result = run<true>(Early::kCopy, out);
  ASSERT_FALSE(result.is_clean());
  EXPECT_NE(all_reports(result).find("read of buffer in before grid_dependency_wait"),
            std::string::npos);
}

TEST(DependentLaunch, others_may_begin_at_once) {
  std::array<uint32_t, kCount> out{};
  for (const Early early : {Early::kLoad, Early::kStore, Early::kCopy}) {
    EXPECT_EQ(all_reports(run<false>(early, out)), "");
  }
}

}  // namespace
}  // namespace pagoda
