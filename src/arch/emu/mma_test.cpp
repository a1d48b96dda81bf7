// ldmatrix, stmatrix and mma.sync: exact on small integers against plain loops, and what is
// reported of their use.
#include "arch/mma.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "arch/ldmatrix.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "core/element.hpp"
#include "emulator/machine/launch.hpp"
#include "testing/material/expect_report.hpp"

namespace pagoda {
namespace {

using namespace arch;
using namespace emulator;

// --- mma ---------------------------------------------------------------------------------------

// Each lane fetches its operands by the figures of the PTX ISA ("Matrix fragments for mma").
template <class T, int K>
struct MmaKernel {
  struct Params {
    arch::GlobalPtr<const T> a;      // [16, K]
    arch::GlobalPtr<const T> b;      // [8, K]: column-major
    arch::GlobalPtr<const float> c;  // [16, 8]
    arch::GlobalPtr<float> d;        // [16, 8]
  };
  struct Storage {};
  static constexpr int kThreads = 32;
  static constexpr int kPerRegister = 4 / sizeof(T);

  static PAGODA_DEVICE void run(const Params& params) {
    const int group = lane_idx() / 4, in_group = lane_idx() % 4;
    constexpr int kA = 16 * K / 32 / kPerRegister, kB = 8 * K / 32 / kPerRegister;
    uint32_t a[kA], b[kB];
    for (int i = 0; i < kA; ++i) {
      const int row = group + (i % 2 == 1 ? 8 : 0);
      const int column = in_group * kPerRegister + i / 2 * 4 * kPerRegister;
      a[i] = load((params.a + row * K + column).template as<const uint32_t>());
    }
    for (int i = 0; i < kB; ++i) {
      const int row = in_group * kPerRegister + i * 4 * kPerRegister;
      b[i] = load((params.b + group * K + row).template as<const uint32_t>());
    }
    float d[4];
    for (int i = 0; i < 4; ++i) {
      d[i] = load(params.c + (group + i / 2 * 8) * 8 + in_group * 2 + i % 2);
    }
    if constexpr (K == 8) {
      mma_m16n8k8<T>(d, a, b);
    } else if constexpr (K == 16) {
      mma_m16n8k16<T>(d, a, b);
    } else {
      mma_m16n8k32<T>(d, a, b);
    }
    for (int i = 0; i < 4; ++i) {
      store(params.d + (group + i / 2 * 8) * 8 + in_group * 2 + i % 2, d[i]);
    }
  }
};

template <class T>
T make_element(float value) {
  if constexpr (std::same_as<T, BFloat16>) return {core::float_to_bf16(value)};
  if constexpr (std::same_as<T, Half>) return {core::float_to_f16(value)};
  if constexpr (std::same_as<T, Float8E4M3>) return {core::float_to_f8e4m3(value)};
}

template <class T, int K>
void expect_exact_product() {
  std::mt19937 random(7);
  const auto small = [&] { return static_cast<float>(static_cast<int>(random() % 17) - 8); };
  std::vector<float> a(16 * K), b(8 * K), c(16 * 8), d(16 * 8, -1);
  std::vector<T> a_bits, b_bits;
  for (float& x : a) a_bits.push_back(make_element<T>(x = small()));
  for (float& x : b) b_bits.push_back(make_element<T>(x = small()));
  for (float& x : c) x = small();
  using Kernel = MmaKernel<T, K>;
  for (const Mode mode : kModes) {
    const Result result = launch<Kernel>(
        shape_of<Kernel>("mma", {1}), {a_bits.data(), b_bits.data(), c.data(), d.data()},
        {input("a", a_bits.data(), a_bits.size()), input("b", b_bits.data(), b_bits.size()),
         input("c", c.data(), c.size()), output("d", d.data(), d.size())},
        {.mode = mode});
    ASSERT_EQ(all_reports(result), "");
    EXPECT_EQ(result.statistics.multiply_adds, 16U * 8 * K);
    for (size_t m = 0; m < 16; ++m) {
      for (size_t n = 0; n < 8; ++n) {
        float sum = c[m * 8 + n];
        for (size_t k = 0; k < K; ++k) sum += a[m * K + k] * b[n * K + k];
        ASSERT_EQ(d[m * 8 + n], sum) << m << ' ' << n;
      }
    }
  }
}

TEST(Mma, every_type_and_shape_is_exact_on_small_integers) {
  expect_exact_product<BFloat16, 16>();
  expect_exact_product<BFloat16, 8>();
  expect_exact_product<Half, 16>();
  expect_exact_product<Half, 8>();
  expect_exact_product<Float8E4M3, 32>();
}

// --- ldmatrix, stmatrix ------------------------------------------------------------------------

enum class Bug { kNone, kNoBarrier, kMisaligned, kOutside };

// One warp writes 8 x 8 matrices row by row, the other loads them and stores them again.
template <int Count, bool LoadTransposed, bool StoreTransposed>
struct MatrixKernel {
  struct Params {
    arch::GlobalPtr<const uint16_t> in;   // [Count, 8, 8]
    arch::GlobalPtr<uint16_t> out;        // [Count, 8, 8]
    arch::GlobalPtr<uint32_t> registers;  // [32, Count]
    Bug bug;
  };
  struct Storage {
    SharedArray<uint16_t, Count * 64> in, out;
  };
  static constexpr int kThreads = 64;
  static inline uint32_t load_line;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = shared_storage<Storage>();
    if (warp_idx() == 0) {
      for (int i = lane_idx(); i < Count * 64; i += 32) {
        store(storage.in.at(i), load(params.in + i));
      }
    }
    if (params.bug != Bug::kNoBarrier) syncthreads();
    if (warp_idx() == 0) return;
    // Lanes from 8 Count on give addresses that no lane uses.
    const int row = lane_idx() < 8 * Count ? lane_idx() : 1 << 16;
    SharedPtr<uint16_t> from = storage.in.at(row * 8);
    if (params.bug == Bug::kMisaligned && lane_idx() == 5) from = from + 4;
    if (params.bug == Bug::kOutside && lane_idx() == 5) from = from + (1 << 16);
    uint32_t registers[Count];
    if constexpr (LoadTransposed) {
      load_line = __LINE__ + 1;
      ldmatrix_transposed<Count>(registers, from);
    } else {
      load_line = __LINE__ + 1;
      ldmatrix<Count>(registers, from);
    }
    for (int i = 0; i < Count; ++i) store(params.registers + lane_idx() * Count + i, registers[i]);
    if constexpr (StoreTransposed) {
      stmatrix_transposed<Count>(storage.out.at(row * 8), registers);
    } else {
      stmatrix<Count>(storage.out.at(row * 8), registers);
    }
    syncwarp();
    for (int i = lane_idx(); i < Count * 64; i += 32) {
      store(params.out + i, load(storage.out.at(i)));
    }
  }
};

template <int Count, bool LoadTransposed, bool StoreTransposed>
struct MatrixRun {
  using Kernel = MatrixKernel<Count, LoadTransposed, StoreTransposed>;
  std::vector<uint16_t> in, out;
  std::vector<uint32_t> registers;
  Result result;

  explicit MatrixRun(Bug bug, Options options = {})
      : in(Count * 64), out(in.size()), registers(32 * Count) {
    for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint16_t>(1000 + i);
    result = launch<Kernel>(
        shape_of<Kernel>("matrix", {1}), {in.data(), out.data(), registers.data(), bug},
        {input("in", in.data(), in.size()), output("out", out.data(), out.size()),
         output("registers", registers.data(), registers.size())},
        options);
  }
};

template <int Count, bool LoadTransposed, bool StoreTransposed>
void expect_matrices_move() {
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      const MatrixRun<Count, LoadTransposed, StoreTransposed> run(Bug::kNone,
                                                                  {.mode = mode, .seed = seed});
      ASSERT_EQ(all_reports(run.result), "") << name(mode) << ' ' << seed;
      for (size_t matrix = 0; matrix < Count; ++matrix) {
        const uint16_t* const m = &run.in[matrix * 64];
        for (size_t lane = 0; lane < 32; ++lane) {
          const size_t row = lane / 4, column = lane % 4 * 2;
          const uint32_t low = LoadTransposed ? m[column * 8 + row] : m[row * 8 + column];
          const uint32_t high =
              LoadTransposed ? m[(column + 1) * 8 + row] : m[row * 8 + column + 1];
          ASSERT_EQ(run.registers[lane * Count + matrix], low | high << 16);
        }
        for (size_t row = 0; row < 8; ++row) {
          for (size_t column = 0; column < 8; ++column) {
            const bool is_flipped = LoadTransposed != StoreTransposed;
            ASSERT_EQ(run.out[matrix * 64 + row * 8 + column],
                      is_flipped ? m[column * 8 + row] : m[row * 8 + column]);
          }
        }
      }
    }
  }
}

TEST(Ldmatrix, loads_and_stores_every_count_straight_and_transposed) {
  expect_matrices_move<1, false, false>();
  expect_matrices_move<2, false, true>();
  expect_matrices_move<4, false, false>();
  expect_matrices_move<4, true, false>();
  expect_matrices_move<2, true, true>();
  expect_matrices_move<1, true, false>();
}

TEST(Ldmatrix, wrong_rows_are_reported_with_the_lane_that_gives_them) {
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      const Options options{.mode = mode, .seed = seed};
      using Straight = MatrixRun<2, false, false>;
      using Transposed = MatrixRun<4, true, false>;
      const Straight misaligned(Bug::kMisaligned, options), raced(Bug::kNoBarrier, options);
      const Transposed outside(Bug::kOutside, options);
      EXPECT_EQ(missing_report(misaligned.result, ReportKind::kBounds, Straight::Kernel::load_line,
                               "warp 1, lane 5"),
                "");
      EXPECT_EQ(missing_report(outside.result, ReportKind::kBounds, Transposed::Kernel::load_line,
                               "warp 1, lane 5"),
                "");
      EXPECT_FALSE(raced.result.is_clean());
    }
  }
  const MatrixRun<2, false, false> raced(Bug::kNoBarrier, {.mode = Mode::kRoundRobin});
  EXPECT_EQ(missing_report(raced.result, ReportKind::kRace, decltype(raced)::Kernel::load_line,
                           "not ordered after the write by store"),
            "");
}

}  // namespace
}  // namespace pagoda
