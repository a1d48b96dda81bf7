// MFMA: exact on small integers against plain loops, and what is reported of its use.
#include "arch/mfma.hpp"

#include <concepts>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arch/layout/mfma_layout.hpp"
#include "arch/memory.hpp"
#include "arch/mma.hpp"
#include "arch/thread.hpp"
#include "core/element.hpp"
#include "emulator/machine/launch.hpp"
#include "testing/material/expect_report.hpp"

namespace pagoda {
namespace {

using namespace arch;
using namespace emulator;

template <class T, int size>
void mfma(float (&d)[size * size / 64], const uint32_t (&a)[2], const uint32_t (&b)[2]) {
  if constexpr (size == 32) {
    mfma_32x32x8<T>(d, a, b);
  } else {
    mfma_16x16x16<T>(d, a, b);
  }
}

// Two waves, each with a product of its own. Each lane fetches its operands by the register maps.
template <class T, int size>
struct MfmaKernel {
  static constexpr int kInner = 256 / size, kRegisters = size * size / 64;
  struct Params {
    arch::GlobalPtr<const T> a;      // [2, size, kInner]
    arch::GlobalPtr<const T> b;      // [2, kInner, size]
    arch::GlobalPtr<const float> c;  // [2, size, size]
    arch::GlobalPtr<float> d;        // [2, size, size]
    int products;                    // D += A B, so many times
  };
  struct Storage {};
  static constexpr int kThreads = 128, kWarpSize = 64;

  static PAGODA_DEVICE void run(const Params& params) {
    const int wave = thread_idx() / 64, lane = thread_idx() % 64;
    uint32_t a[2] = {}, b[2] = {};
    for (int e = 0; e < 4; ++e) {
      const MatrixIndex of_a = mfma_a(size, lane, e), of_b = mfma_b(size, lane, e);
      const T from_a = load(params.a + (wave * size * kInner + of_a.row * kInner + of_a.column));
      const T from_b = load(params.b + (wave * size * kInner + of_b.row * size + of_b.column));
      a[e / 2] |= static_cast<uint32_t>(from_a.bits) << 16 * (e % 2);
      b[e / 2] |= static_cast<uint32_t>(from_b.bits) << 16 * (e % 2);
    }
    const auto place = [&](int i) {
      const MatrixIndex at = mfma_accumulator(size, lane, i);
      return wave * size * size + at.row * size + at.column;
    };
    float d[kRegisters];
    for (int i = 0; i < kRegisters; ++i) d[i] = load(params.c + place(i));
    for (int i = 0; i < params.products; ++i) mfma<T, size>(d, a, b);
    for (int i = 0; i < kRegisters; ++i) store(params.d + place(i), d[i]);
  }
};

template <class T>
T make_element(float value) {
  if constexpr (std::same_as<T, BFloat16>) return {core::float_to_bf16(value)};
  if constexpr (std::same_as<T, Half>) return {core::float_to_f16(value)};
}

template <class T, int size>
void expect_exact_product(int products) {
  using Kernel = MfmaKernel<T, size>;
  constexpr size_t kSize = size, kK = Kernel::kInner;
  std::mt19937 random(7);
  const auto small = [&] { return static_cast<float>(static_cast<int>(random() % 17) - 8); };
  std::vector<float> a(2 * kSize * kK), b(2 * kSize * kK), c(2 * kSize * kSize), d(c.size(), -1);
  std::vector<T> a_bits, b_bits;
  for (float& x : a) a_bits.push_back(make_element<T>(x = small()));
  for (float& x : b) b_bits.push_back(make_element<T>(x = small()));
  for (float& x : c) x = small();
  for (const Mode mode : kModes) {
    const Result result = launch<Kernel>(
        shape_of<Kernel>("mfma", {1}), {a_bits.data(), b_bits.data(), c.data(), d.data(), products},
        {input("a", a_bits.data(), a_bits.size()), input("b", b_bits.data(), b_bits.size()),
         input("c", c.data(), c.size()), output("d", d.data(), d.size())},
        {.mode = mode});
    ASSERT_EQ(all_reports(result), "");
    EXPECT_EQ(result.statistics.multiply_adds, 2 * static_cast<size_t>(products) * 256 * kSize);
    for (size_t wave = 0; wave < 2; ++wave) {
      for (size_t m = 0; m < kSize; ++m) {
        for (size_t n = 0; n < kSize; ++n) {
          const size_t at = (wave * kSize + m) * kSize + n;
          float sum = 0;
          for (size_t k = 0; k < kK; ++k) {
            sum += a[(wave * kSize + m) * kK + k] * b[(wave * kK + k) * kSize + n];
          }
          ASSERT_EQ(d[at], c[at] + static_cast<float>(products) * sum)
              << size << ", wave " << wave << ": " << m << ' ' << n;
        }
      }
    }
  }
}

TEST(Mfma, every_type_and_shape_is_exact_on_small_integers) {
  expect_exact_product<BFloat16, 32>(1);
  expect_exact_product<BFloat16, 16>(1);
  expect_exact_product<Half, 32>(1);
  expect_exact_product<Half, 16>(1);
}

TEST(Mfma, products_accumulate_onto_d) {
  expect_exact_product<BFloat16, 32>(0);
  expect_exact_product<BFloat16, 32>(3);
  expect_exact_product<Half, 16>(3);
}

// --- use against its rules ---------------------------------------------------------------------

enum class Use {
  kAllLanes,
  kMissingLane,  // lane 40 has ended
  kTwoShapes,    // lanes from 32 on are at another instruction
  kMmaSync,      // NVIDIA's instruction
  kMmaSyncOf32,  // by the first 32 lanes
};

struct UseKernel {
  struct Params {
    Use use;
  };
  struct Storage {};
  static constexpr int kThreads = 64, kWarpSize = 64;
  static inline uint32_t bug_line;

  static PAGODA_DEVICE void run(const Params& params) {
    uint32_t a[4] = {}, b[2] = {}, low[2] = {};
    float d32[16] = {}, d16[4] = {};
    if (params.use == Use::kMissingLane && lane_idx() == 40) return;
    if (params.use == Use::kMmaSyncOf32 && lane_idx() >= 32) return;
    if (params.use == Use::kMmaSync || params.use == Use::kMmaSyncOf32) {
      bug_line = __LINE__ + 1;
      mma_m16n8k16<BFloat16>(d16, a, b);
    } else if (params.use == Use::kTwoShapes && lane_idx() >= 32) {
      mfma_16x16x16<BFloat16>(d16, low, b);
    } else {
      bug_line = __LINE__ + 1;
      mfma_32x32x8<BFloat16>(d32, low, b);
    }
  }
};

Result run_use(Use use, LaunchShape shape, const Options& options) {
  return launch<UseKernel>(std::move(shape), {use}, {}, options);
}
// In every mode, with 5 seeds: a report of this kind at the line of the bug, or no report.
void expect_reports(Use use, const LaunchShape& shape, ReportKind kind, std::string_view text) {
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const Result result = run_use(use, shape, {.mode = mode, .seed = seed});
      EXPECT_EQ(missing_report(result, kind, UseKernel::bug_line, text), "") << name(mode);
    }
  }
}
LaunchShape shape_of_use() { return shape_of<UseKernel>("use", {1}); }

TEST(Mfma, all_lanes_of_a_wave_are_silent) {
  for (const Mode mode : kModes) {
    EXPECT_EQ(all_reports(run_use(Use::kAllLanes, shape_of_use(), {.mode = mode})), "");
  }
}

TEST(Mfma, a_lane_that_never_comes_is_a_deadlock) {
  expect_reports(Use::kMissingLane, shape_of_use(), ReportKind::kDeadlock,
                 "wait for the other lanes of its warp");
}

TEST(Mfma, lanes_at_another_instruction_are_reported) {
  for (const Mode mode : kModes) {
    const Result result = run_use(Use::kTwoShapes, shape_of_use(), {.mode = mode});
    ASSERT_EQ(result.reports.size(), 1U);
    EXPECT_EQ(result.reports[0].kind, ReportKind::kProtocol);
    EXPECT_NE(result.reports[0].message.find("not at the same instruction"), std::string::npos);
  }
}

TEST(Mfma, a_wave_of_fewer_than_64_threads_is_reported) {
  LaunchShape shape = shape_of_use();
  shape.threads = 96;
  expect_reports(Use::kAllLanes, shape, ReportKind::kProtocol,
                 "the warp does not have all 64 lanes");
}

TEST(Mfma, a_machine_of_warps_of_32_lanes_is_reported) {
  LaunchShape shape = shape_of_use();
  shape.warp_size = 32;
  expect_reports(Use::kAllLanes, shape, ReportKind::kProtocol,
                 "the warp does not have all 64 lanes");
}

TEST(Mfma, mma_sync_on_a_machine_of_waves_of_64_lanes_is_reported) {
  for (const Use use : {Use::kMmaSync, Use::kMmaSyncOf32}) {
    expect_reports(use, shape_of_use(), ReportKind::kProtocol,
                   "the warp does not have all 32 lanes");
  }
}

}  // namespace
}  // namespace pagoda
