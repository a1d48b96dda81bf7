// wgmma: exact on small integers against plain loops for every shape, type, major-ness and swizzle;
// its rules, each by a kernel that breaks it, beside the kernel that follows them and has no
// report.
#include "arch/wgmma.hpp"

#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <iostream>
#include <random>
#include <utility>
#include <vector>

#include "arch/debug.hpp"
#include "arch/fence.hpp"
#include "arch/layout/operand_tile.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "core/element.hpp"
#include "emulator/machine/launch.hpp"
#include "emulator/machine/mutation.hpp"
#include "testing/material/expect_report.hpp"

namespace pagoda {
namespace {

using namespace arch;
using namespace emulator;

// Row and column of accumulator i (PTX ISA, figure "WGMMA .m64nNk16 register fragment layout for
// accumulator matrix D").
PAGODA_DEVICE int row_of(int i) {
  return thread_idx() % 128 / 32 * 16 + lane_idx() / 4 + i % 4 / 2 * 8;
}
PAGODA_DEVICE int column_of(int i) { return i / 4 * 8 + lane_idx() % 4 * 2 + i % 2; }

// --- exactness ---------------------------------------------------------------------------------

template <class T>
constexpr int kStep = 32 / sizeof(T);  // K of one instruction
template <class T>
constexpr int kDepth = 128 / sizeof(T);  // K of the test: the widest swizzle atom

// D = A B + C over kDepth, the operands in shared memory as the host has laid them out.
template <class T, int N, Major a_major, Major b_major, bool AInRegisters>
struct ProductKernel {
  struct Params {
    OperandTile a, b;                       // start_bytes relative to the image
    arch::GlobalPtr<const Words<4>> image;  // [image_bytes / 16]
    int image_bytes;
    arch::GlobalPtr<const uint32_t> a_registers;  // [steps, 128, 4]
    arch::GlobalPtr<const float> c;               // [64, N]; nullptr: 0
    arch::GlobalPtr<float> d;                     // [64, N]
  };
  struct Storage {
    SharedArray<std::byte, 64 * 128 + 256 * 128, 1024> image;
  };
  static constexpr int kThreads = 128;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = shared_storage<Storage>();
    for (int i = thread_idx(); i < params.image_bytes / 16; i += kThreads) {
      store(storage.image.at(16 * i).template as<Words<4>>(), load(params.image + i));
    }
    fence_proxy_async_shared();
    syncthreads();
    OperandTile a = params.a, b = params.b;
    a.start_bytes += storage.image.data().address();
    b.start_bytes += storage.image.data().address();
    const SmemDescriptor a_start = encode(describe(a), DescriptorFormat::kSm90);
    const SmemDescriptor b_start = encode(describe(b), DescriptorFormat::kSm90);
    float d[N / 2];
    for (int i = 0; i < N / 2; ++i) {
      d[i] = params.c != nullptr ? load(params.c + row_of(i) * N + column_of(i)) : 1e30F;
    }
    uint32_t a_registers[kDepth<T> / kStep<T>][4];
    wgmma_fence();
    for (int k = 0; k < kDepth<T>; k += kStep<T>) {
      const bool accumulates = k != 0 || params.c != nullptr;
      const SmemDescriptor b_here = advance(b_start, tile_offset(b, 0, k));
      if constexpr (AInRegisters) {
        uint32_t(&registers)[4] = a_registers[k / kStep<T>];
        for (int i = 0; i < 4; ++i) {
          registers[i] =
              load(params.a_registers + (k / kStep<T> * kThreads + thread_idx()) * 4 + i);
        }
        Wgmma<T, N, Major::kK, b_major>::rs(d, registers, b_here, accumulates);
      } else {
        const SmemDescriptor a_here = advance(a_start, tile_offset(a, 0, k));
        Wgmma<T, N, a_major, b_major>::ss(d, a_here, b_here, accumulates);
      }
    }
    wgmma_commit_group();
    wgmma_wait_group<0>();
    for (int i = 0; i < N / 2; ++i) store(params.d + row_of(i) * N + column_of(i), d[i]);
  }
};

template <class T>
T make_element(float value) {
  if constexpr (std::same_as<T, BFloat16>) return {core::float_to_bf16(value)};
  if constexpr (std::same_as<T, Half>) return {core::float_to_f16(value)};
  if constexpr (std::same_as<T, Float8E4M3>) return {core::float_to_f8e4m3(value)};
}

std::vector<float> small_integers(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(static_cast<int>(random() % 9) - 4);
  return values;
}

// Lays `values` [mn, k] out as TMA would.
template <class T>
void fill(std::vector<std::byte>& image, const OperandTile& tile,
          const std::vector<float>& values) {
  for (int mn = 0; mn < tile.mn; ++mn) {
    for (int k = 0; k < tile.k; ++k) {
      const T element = make_element<T>(values[static_cast<size_t>(mn * tile.k + k)]);
      const uint32_t at =
          swizzle_address(tile.start_bytes + tile_offset(tile, mn, k), tile.swizzle);
      std::memcpy(&image[at], &element, sizeof(T));
    }
  }
}

// By the figures "WGMMA ... register fragment layout for matrix A".
template <class T>
std::vector<uint32_t> fragments_of_a(const std::vector<float>& a) {
  constexpr int kDepthT = kDepth<T>, kPerRegister = 4 / sizeof(T);
  std::vector<uint32_t> registers;
  for (int step = 0; step < kDepthT; step += kStep<T>) {
    for (int thread = 0; thread < 128; ++thread) {
      for (int i = 0; i < 4; ++i) {
        const int row = thread / 32 * 16 + thread % 32 / 4 + i % 2 * 8;
        const int k = step + thread % 4 * kPerRegister + i / 2 * 4 * kPerRegister;
        T elements[kPerRegister];
        for (int e = 0; e < kPerRegister; ++e) {
          elements[e] = make_element<T>(a[static_cast<size_t>(row * kDepthT + k + e)]);
        }
        std::memcpy(&registers.emplace_back(), elements, 4);
      }
    }
  }
  return registers;
}

template <class T, int N, Major a_major, Major b_major, bool AInRegisters>
void expect_exact_product(Swizzle swizzle_a, Swizzle swizzle_b, AtomOrder order, bool has_c) {
  using Kernel = ProductKernel<T, N, a_major, b_major, AInRegisters>;
  constexpr int kD = kDepth<T>;
  const auto tile = [&](uint32_t start, int mn, Major major, Swizzle swizzle) {
    return OperandTile{.start_bytes = start,
                       .mn = mn,
                       .k = kD,
                       .element_bytes = sizeof(T),
                       .major = major,
                       .swizzle = swizzle,
                       .order = order};
  };
  typename Kernel::Params params{};
  params.a = tile(0, 64, a_major, swizzle_a);
  params.b = tile(64 * 128, N, b_major, swizzle_b);
  std::vector<std::byte> image(64 * 128 + N * 128);
  const std::vector<float> a = small_integers(64 * kD, 1), b = small_integers(N * kD, 2);
  const std::vector<float> c = small_integers(64 * N, 3);
  const std::vector<uint32_t> a_registers = fragments_of_a<T>(a);
  std::vector<float> d(64 * N);
  // Where A is in registers, shared memory holds none of it.
  if (!AInRegisters) fill<T>(image, params.a, a);
  fill<T>(image, params.b, b);
  params.image = reinterpret_cast<const Words<4>*>(image.data());
  params.image_bytes = static_cast<int>(image.size());
  params.a_registers = a_registers.data();
  params.c = has_c ? c.data() : nullptr;
  params.d = d.data();
  const Result result =
      launch<Kernel>(shape_of<Kernel>("product", {1}), params,
                     {input("image", image.data(), image.size()),
                      input("a_registers", a_registers.data(), a_registers.size()),
                      input("c", c.data(), c.size()), output("d", d.data(), d.size())},
                     {.seed = N});
  ASSERT_EQ(all_reports(result), "");
  ASSERT_EQ(result.statistics.multiply_adds, uint64_t{64} * N * kD);
  for (size_t m = 0; m < 64; ++m) {
    for (size_t n = 0; n < N; ++n) {
      float sum = has_c ? c[m * N + n] : 0;
      for (size_t k = 0; k < kD; ++k) sum += a[m * kD + k] * b[n * kD + k];
      ASSERT_EQ(d[m * N + n], sum) << m << ' ' << n;
    }
  }
}

constexpr Swizzle kSwizzles[] = {Swizzle::kNone, Swizzle::k32B, Swizzle::k64B, Swizzle::k128B};

// Every swizzle and both orders of atoms.
template <class T, int N, Major a_major, Major b_major, bool AInRegisters>
void expect_exact_products() {
  for (const Swizzle swizzle_a : kSwizzles) {
    for (const Swizzle swizzle_b : kSwizzles) {
      if (AInRegisters && swizzle_a != Swizzle::kNone) continue;
      // A tile is made of whole atoms.
      if (b_major == Major::kMN && N * sizeof(T) % swizzle_width_bytes(swizzle_b) != 0) continue;
      for (const AtomOrder order : {AtomOrder::kMnFirst, AtomOrder::kKFirst}) {
        SCOPED_TRACE(testing::Message() << "N " << N << " swizzles " << int(swizzle_a) << ' '
                                        << int(swizzle_b) << " order " << int(order));
        expect_exact_product<T, N, a_major, b_major, AInRegisters>(swizzle_a, swizzle_b, order,
                                                                   order == AtomOrder::kKFirst);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

template <class T, int... I>
void expect_every_n(std::integer_sequence<int, I...>) {
  const auto of_n = []<int N>() {
    constexpr Swizzle swizzle = kSwizzles[N / 8 % 4];
    expect_exact_product<T, N, Major::kK, Major::kK, false>(swizzle, swizzle, AtomOrder::kMnFirst,
                                                            false);
    expect_exact_product<T, N, Major::kK, Major::kK, true>(swizzle, swizzle, AtomOrder::kKFirst,
                                                           true);
  };
  (of_n.template operator()<8 * (I + 1)>(), ...);
}

template <class T>
void expect_every_major() {
  constexpr Major kK = Major::kK, kMN = Major::kMN;
  expect_exact_products<T, 64, kK, kK, false>();
  expect_exact_products<T, 64, kK, kMN, false>();
  expect_exact_products<T, 64, kMN, kK, false>();
  expect_exact_products<T, 128, kMN, kMN, false>();
  expect_exact_products<T, 16, kK, kMN, false>();
  expect_exact_products<T, 256, kK, kMN, true>();
}

TEST(Wgmma, every_n_is_exact_on_small_integers) {
  expect_every_n<BFloat16>(std::make_integer_sequence<int, 32>());
  expect_every_n<Half>(std::make_integer_sequence<int, 32>());
  expect_every_n<Float8E4M3>(std::make_integer_sequence<int, 32>());
}

TEST(Wgmma, every_major_and_swizzle_is_exact_on_small_integers) {
  expect_every_major<BFloat16>();
  expect_every_major<Half>();
  expect_exact_products<Float8E4M3, 96, Major::kK, Major::kK, false>();
  expect_exact_products<Float8E4M3, 32, Major::kK, Major::kK, true>();
}

// --- rules -------------------------------------------------------------------------------------

enum class Bug {
  kNone,
  kNoProxyFence,
  kNoBarrier,
  kNoFence,
  kFenceInOneWarpOnly,
  kNoCommit,
  kNoWait,
  kNoLastWait,
  kWaitForFewer,
  kWarpReleasesEarly,
  kWritesAccumulators,
  kWritesA,
  kOtherShape,
  kReservedBits,
  kOutside,
  kUnwritten,
  kDescriptorsDiffer,
  kWarpIsMissing,
};

// The consumer of two tiles of B, [64, 64] bf16 in one stage of shared memory, which a fifth warp
// fills. D = sum of A B over the tiles; A is constant: row m has m % 4 everywhere.
struct RulesKernel {
  static constexpr int kTiles = 3, kN = 64, kK = 64;
  struct Params {
    arch::GlobalPtr<const Words<4>> tiles;  // [kTiles, kN, kK] bf16
    arch::GlobalPtr<float> d;               // [64, kN]
    Bug bug;
  };
  struct Storage {
    SharedArray<std::byte, kN * 128, 1024> b;
  };
  static constexpr int kThreads = 160;
  // Where a bug shows.
  static inline uint32_t store_line, first_line, wait_line, next_line, last_line, commit_line;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = shared_storage<Storage>();
    constexpr int kFull = 1, kEmpty = 2;
    if (warp_idx() == 4) {
      const Role role("producer");
      for (int tile = 0; tile < kTiles; ++tile) {
        if (tile != 0) named_barrier_sync(kEmpty, kThreads);
        for (int i = lane_idx(); i < kN * 8; i += 32) {
          if (params.bug == Bug::kUnwritten && i == 9 && tile == 0) continue;
          const int row = i / 8, chunk = i % 8;
          store_line = __LINE__ + 1;
          store(storage.b.at(row * 128 + (chunk ^ row % 8) * 16).as<Words<4>>(),
                load(params.tiles + tile * kN * 8 + i));
        }
        if (params.bug != Bug::kNoProxyFence) fence_proxy_async_shared();
        if (params.bug != Bug::kNoBarrier) named_barrier_arrive(kFull, kThreads);
      }
      return;
    }
    const Role role("math");
    const OperandTile tile_b{.start_bytes = storage.b.data().address(), .mn = kN, .k = kK};
    SmemDescriptor b = encode(describe(tile_b), DescriptorFormat::kSm90);
    if (params.bug == Bug::kReservedBits) b.bits |= uint64_t{1} << 14;
    if (params.bug == Bug::kOutside) b = advance(b, 2048);
    if (params.bug == Bug::kDescriptorsDiffer && warp_idx() == 3) b = advance(b, 32);
    const uint16_t element = core::float_to_bf16(static_cast<float>(lane_idx() / 4 % 4));
    const uint32_t pair = element | static_cast<uint32_t>(element) << 16;
    uint32_t a[4] = {pair, pair, pair, pair};
    float d[kN / 2];
    for (int tile = 0; tile < kTiles; ++tile) {
      if (params.bug != Bug::kNoBarrier) named_barrier_sync(kFull, kThreads);
      if (params.bug == Bug::kWarpIsMissing && warp_idx() == 2) return;
      const bool is_fenced = params.bug != Bug::kNoFence &&
                             (params.bug != Bug::kFenceInOneWarpOnly || warp_idx() == 0);
      if (tile != 1 || is_fenced) wgmma_fence();
      first_line = __LINE__ + 1;
      Wgmma<BFloat16, kN>::rs(d, a, b, tile != 0);
      for (int k = 16; k < kK; k += 16) {
        last_line = __LINE__ + 1;
        Wgmma<BFloat16, kN>::rs(d, a, advance(b, tile_offset(tile_b, 0, k)), true);
      }
      if (params.bug == Bug::kOtherShape) {
        auto& half = reinterpret_cast<float(&)[kN / 4]>(d);
        next_line = __LINE__ + 1;
        Wgmma<BFloat16, kN / 2>::rs(half, a, b, true);
      }
      commit_line = __LINE__ + 1;
      if (params.bug != Bug::kNoCommit || tile != 2) wgmma_commit_group();
      if (params.bug == Bug::kWritesAccumulators && tile == 1) d[5] = 0;
      if (params.bug == Bug::kWritesA && tile == 1) ++a[3];
      const bool waits = (params.bug != Bug::kNoWait || tile == kTiles - 1) &&
                         (params.bug != Bug::kNoLastWait || tile != kTiles - 1);
      const bool is_early = params.bug == Bug::kWarpReleasesEarly && warp_idx() == 2;
      if (is_early && tile != kTiles - 1) named_barrier_arrive(kEmpty, kThreads);
      wait_line = __LINE__ + 1;
      if (waits && params.bug != Bug::kWaitForFewer) wgmma_wait_group<0>();
      if (params.bug == Bug::kWaitForFewer) wgmma_wait_group<1>();
      if (!is_early && tile != kTiles - 1) named_barrier_arrive(kEmpty, kThreads);
    }
    for (int i = 0; i < kN / 2; ++i) store(params.d + row_of(i) * kN + column_of(i), d[i]);
  }
};

struct RulesRun {
  Result result;
  bool is_right = true;
};

RulesRun run_rules(Bug bug, Options options, int threads = RulesKernel::kThreads) {
  constexpr size_t kTiles = RulesKernel::kTiles, kN = RulesKernel::kN, kK = RulesKernel::kK;
  const std::vector<float> values = small_integers(kTiles * kN * kK, 5);
  std::vector<uint16_t> tiles;
  tiles.reserve(values.size());
  for (const float value : values) tiles.push_back(core::float_to_bf16(value));
  std::vector<float> d(64 * kN);
  LaunchShape shape = shape_of<RulesKernel>("rules", {1});
  shape.threads = threads;
  RulesRun run;
  run.result = launch<RulesKernel>(
      shape, {reinterpret_cast<const Words<4>*>(tiles.data()), d.data(), bug},
      {input("tiles", tiles.data(), tiles.size()), output("d", d.data(), d.size())}, options);
  for (size_t m = 0; m < 64; ++m) {
    for (size_t n = 0; n < kN; ++n) {
      float sum = 0;
      for (size_t tile = 0; tile < kTiles; ++tile) {
        for (size_t k = 0; k < kK; ++k) {
          sum += static_cast<float>(m % 4) * values[(tile * kN + n) * kK + k];
        }
      }
      run.is_right = run.is_right && d[m * kN + n] == sum;
    }
  }
  return run;
}

TEST(WgmmaRules, correct_kernel_is_silent_and_right_in_every_mode_over_100_seeds) {
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      const RulesRun run = run_rules(Bug::kNone, {.mode = mode, .seed = seed});
      ASSERT_EQ(all_reports(run.result), "") << name(mode) << ' ' << seed;
      ASSERT_TRUE(run.is_right) << name(mode) << ' ' << seed;
    }
  }
}

TEST(WgmmaRules, each_broken_rule_is_reported_with_its_line_in_every_mode) {
  using Kernel = RulesKernel;
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 5; ++seed) {
      SCOPED_TRACE(testing::Message() << name(mode) << ' ' << seed);
      const auto expect = [&](Bug bug, ReportKind kind, const uint32_t& line,
                              std::string_view text) {
        const RulesRun run = run_rules(bug, {.mode = mode, .seed = seed});
        EXPECT_EQ(missing_report(run.result, kind, line, text), "");
      };
      expect(Bug::kNoProxyFence, ReportKind::kRace, Kernel::first_line,
             "fence_proxy_async is missing");
      expect(Bug::kNoFence, ReportKind::kProtocol, Kernel::first_line, "no wgmma_fence");
      expect(Bug::kFenceInOneWarpOnly, ReportKind::kProtocol, Kernel::first_line, "no wgmma_fence");
      expect(Bug::kNoCommit, ReportKind::kProtocol, Kernel::last_line,
             "without wgmma_commit_group");
      expect(Bug::kNoLastWait, ReportKind::kProtocol, Kernel::commit_line,
             "without a wgmma_wait_group");
      expect(Bug::kWritesAccumulators, ReportKind::kProtocol, Kernel::wait_line,
             "wrote accumulators");
      expect(Bug::kWritesA, ReportKind::kProtocol, Kernel::wait_line, "wrote registers of A");
      expect(Bug::kOtherShape, ReportKind::kProtocol, Kernel::next_line, "of another shape");
      expect(Bug::kReservedBits, ReportKind::kProtocol, Kernel::first_line, "reserved bits");
      expect(Bug::kOutside, ReportKind::kBounds, Kernel::first_line, "operand B");
      expect(Bug::kDescriptorsDiffer, ReportKind::kProtocol, Kernel::first_line,
             "other descriptors");
    }
  }
}

// Which of the two accesses comes second depends on the schedule.
bool is_race_for_b(const RulesRun& run) {
  const auto is_at = [&](uint32_t line) {
    return missing_report(run.result, ReportKind::kRace, line, "").empty();
  };
  return is_at(RulesKernel::store_line) || is_at(RulesKernel::first_line) ||
         is_at(RulesKernel::last_line);
}

// Three warps release B after their wait, one before: their waits do not cover its share.
TEST(WgmmaRules, wait_of_a_warp_does_not_cover_the_other_warps) {
  for (const Mode mode : kModes) {
    int races = 0;
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      const RulesRun run = run_rules(Bug::kWarpReleasesEarly, {.mode = mode, .seed = seed});
      races += is_race_for_b(run) ? 1 : 0;
    }
    EXPECT_GE(races, 5) << name(mode);  // eight wgmma before two releases, each of a random warp
  }
}

TEST(WgmmaRules, buffer_overwritten_before_the_wait_is_a_race) {
  for (const Bug bug : {Bug::kNoWait, Bug::kWaitForFewer, Bug::kNoBarrier}) {
    for (const Mode mode : kModes) {
      for (uint64_t seed = 1; seed <= 20; ++seed) {
        const RulesRun run = run_rules(bug, {.mode = mode, .seed = seed});
        EXPECT_TRUE(is_race_for_b(run))
            << static_cast<int>(bug) << ' ' << name(mode) << ' ' << seed;
      }
    }
  }
}

TEST(WgmmaRules, operands_that_nothing_wrote_are_nan_and_reported_on_request) {
  const RulesRun quiet = run_rules(Bug::kUnwritten, {});
  EXPECT_EQ(all_reports(quiet.result), "");
  EXPECT_FALSE(quiet.is_right);
  const RulesRun strict = run_rules(Bug::kUnwritten, {.report_unwritten_operands = true});
  EXPECT_EQ(missing_report(strict.result, ReportKind::kUninitialised, RulesKernel::first_line,
                           "nothing wrote"),
            "");
  EXPECT_EQ(all_reports(run_rules(Bug::kNone, {.report_unwritten_operands = true}).result), "");
}

TEST(WgmmaRules, warpgroup_of_three_warps_is_reported) {
  for (const Mode mode : kModes) {
    const RulesRun missing = run_rules(Bug::kWarpIsMissing, {.mode = mode});
    EXPECT_EQ(missing_report(missing.result, ReportKind::kDeadlock, RulesKernel::wait_line,
                             "all 128 threads of the warpgroup must execute"),
              "");
  }
}

TEST(WgmmaRules, every_mutant_is_noticed) {
  MutationSites sites;
  ASSERT_EQ(all_reports(run_rules(Bug::kNone, {.mutation = &sites}).result), "");
  const size_t count = sites.sites().size();
  EXPECT_GE(count, 8U);
  for (size_t site = 0; site < count; ++site) {
    bool is_noticed = false;
    for (uint64_t seed = 1; seed <= 20 && !is_noticed; ++seed) {
      sites.drop(static_cast<int>(site));
      const RulesRun run = run_rules(Bug::kNone, {.seed = seed, .mutation = &sites});
      is_noticed = !run.result.is_clean() || !run.is_right;
    }
    EXPECT_TRUE(is_noticed) << sites.sites()[site].primitive << " at line "
                            << sites.sites()[site].line;
  }
}

// --- groups ------------------------------------------------------------------------------------

// Two groups in flight; the first is waited for before the second.
struct GroupsKernel {
  struct Params {
    arch::GlobalPtr<float> d;  // [4, 64, 8]: both accumulators after each of the two waits
  };
  struct Storage {
    SharedArray<std::byte, 8 * 32, 1024> b;
  };
  static constexpr int kThreads = 128;
  static inline uint32_t fence_line;

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = shared_storage<Storage>();
    const uint16_t one = core::float_to_bf16(1);
    const uint32_t ones = one | static_cast<uint32_t>(one) << 16;
    if (thread_idx() < 64) store(storage.b.at(4 * thread_idx()).as<uint32_t>(), ones);
    fence_proxy_async_shared();
    syncthreads();
    const SmemDescriptor b = encode({.start_bytes = storage.b.data().address(),
                                     .leading_bytes = 128,
                                     .stride_bytes = 256,
                                     .swizzle = Swizzle::kNone},
                                    DescriptorFormat::kSm90);
    const uint32_t a[4] = {ones, ones, ones, ones};
    float d[2][4] = {{1, 1, 1, 1}, {2, 2, 2, 2}};
    for (auto& accumulators : d) {
      fence_line = __LINE__ + 1;
      wgmma_fence();
      Wgmma<BFloat16, 8>::rs(accumulators, a, b, true);
      Wgmma<BFloat16, 8>::rs(accumulators, a, b, true);
      wgmma_commit_group();
    }
    wgmma_wait_group<1>();
    const auto show = [&](int moment) {
      for (int i = 0; i < 4; ++i) {
        for (int which = 0; which < 2; ++which) {
          store(params.d + ((2 * moment + which) * 64 + row_of(i)) * 8 + column_of(i), d[which][i]);
        }
      }
    };
    show(0);
    wgmma_wait_group<0>();
    show(1);
  }
};

TEST(WgmmaRules, cta_without_a_whole_warpgroup_is_reported) {
  LaunchShape shape = shape_of<GroupsKernel>("groups", {1});
  shape.threads = 96;
  std::vector<float> d(4 * 64 * 8);
  const Result result = launch<GroupsKernel>(shape, {d.data()}, {output("d", d.data(), d.size())});
  EXPECT_EQ(missing_report(result, ReportKind::kProtocol, GroupsKernel::fence_line,
                           "does not have four warps"),
            "");
}

TEST(Wgmma, accumulators_are_nan_until_the_wait_for_their_group) {
  for (const Mode mode : kModes) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      std::vector<float> d(4 * 64 * 8);
      const Result result =
          launch<GroupsKernel>(shape_of<GroupsKernel>("groups", {1}), {d.data()},
                               {output("d", d.data(), d.size())}, {.mode = mode, .seed = seed});
      ASSERT_EQ(all_reports(result), "");
      for (size_t i = 0; i < 64 * 8; ++i) {
        ASSERT_EQ(d[i], 33);
        ASSERT_TRUE(std::isnan(d[64 * 8 + i]));
        ASSERT_EQ(d[2 * 64 * 8 + i], 33);
        ASSERT_EQ(d[3 * 64 * 8 + i], 34);
      }
    }
  }
}

// --- speed -------------------------------------------------------------------------------------

struct SpeedKernel {
  static constexpr int kIterations = 100;
  struct Params {};
  struct Storage {
    SharedArray<std::byte, 64 * 128, 1024> a;
    SharedArray<std::byte, 128 * 128, 1024> b;
  };
  static constexpr int kThreads = 128;

  static PAGODA_DEVICE void run(const Params&) {
    auto& storage = shared_storage<Storage>();
    const OperandTile tile_a{.start_bytes = storage.a.data().address(), .mn = 64, .k = 64};
    const OperandTile tile_b{.start_bytes = storage.b.data().address(), .mn = 128, .k = 64};
    const SmemDescriptor a = encode(describe(tile_a), DescriptorFormat::kSm90);
    const SmemDescriptor b = encode(describe(tile_b), DescriptorFormat::kSm90);
    float d[64];
    for (int iteration = 0; iteration < kIterations; ++iteration) {
      wgmma_fence();
      for (int k = 0; k < 64; k += 16) {
        Wgmma<BFloat16, 128>::ss(d, advance(a, tile_offset(tile_a, 0, k)),
                                 advance(b, tile_offset(tile_b, 0, k)), k != 0);
      }
      wgmma_commit_group();
      wgmma_wait_group<0>();
    }
  }
};

TEST(Wgmma, speed) {
  const Result result = launch<SpeedKernel>(shape_of<SpeedKernel>("speed", {1}), {}, {});
  ASSERT_EQ(all_reports(result), "");
  const uint64_t products = result.statistics.multiply_adds / (64 * 128 * 16);
  EXPECT_EQ(products, 4U * SpeedKernel::kIterations);
  std::cout << "m64n128k16 of bf16: "
            << static_cast<uint64_t>(static_cast<double>(products) / result.statistics.seconds)
            << " a second on one core\n";
}

}  // namespace
}  // namespace pagoda
