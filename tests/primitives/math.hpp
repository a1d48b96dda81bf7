// The approximate exponential, within the error that the PTX ISA states, and packing conversions.
#pragma once

#include <bit>
#include <cmath>
#include <limits>

#include "arch/math.hpp"
#include "arch/memory.hpp"
#include "arch/thread.hpp"
#include "numbers.hpp"
#include "target.hpp"

namespace pagoda::primitives {

using namespace arch;

struct Exp2 {
  struct Params {
    arch::GlobalPtr<const float> in;
    arch::GlobalPtr<float> out;
  };
  static constexpr int kThreads = 256, kClusterSize = 1, kMinArch = 80;
  struct Storage {};
  PAGODA_DEVICE static void run(const Params& p) {
    const int i = block_idx().x * kThreads + thread_idx();
    store(p.out + i, exp2_approx(load(p.in + i)));
  }
};

struct Reciprocal {
  using Params = Exp2::Params;
  static constexpr int kThreads = 256, kClusterSize = 1, kMinArch = 80;
  struct Storage {};
  PAGODA_DEVICE static void run(const Params& p) {
    const int i = block_idx().x * kThreads + thread_idx();
    store(p.out + i, reciprocal_approx(load(p.in + i)));
  }
};

struct Max3 {
  struct Params {
    arch::GlobalPtr<const float> in;
    arch::GlobalPtr<float> out;
  };
  static constexpr int kThreads = 256, kClusterSize = 1, kMinArch = 80;
  struct Storage {};
  PAGODA_DEVICE static void run(const Params& p) {
    const int i = thread_idx();
    store(p.out + i, max3(load(p.in + i), load(p.in + (i + 1) % 256), load(p.in + (i + 2) % 256)));
  }
};

struct PackHalves {
  struct Params {
    arch::GlobalPtr<const float> in;
    arch::GlobalPtr<uint32_t> out;  // bf16 pairs, then f16 pairs
  };
  static constexpr int kThreads = 256, kClusterSize = 1, kMinArch = 80;
  struct Storage {};
  PAGODA_DEVICE static void run(const Params& p) {
    const int i = thread_idx();
    const float low = load(p.in + 2 * i), high = load(p.in + 2 * i + 1);
    store(p.out + i, pack_bf16(low, high));
    store(p.out + kThreads + i, pack_f16(low, high));
  }
};

struct PackE4M3 {
  struct Params {
    arch::GlobalPtr<const float> in;
    arch::GlobalPtr<uint16_t> out;
  };
  static constexpr int kThreads = 256, kClusterSize = 1, kMinArch = 90;  // sm_89 has it
  struct Storage {};
  PAGODA_DEVICE static void run(const Params& p) {
    const int i = thread_idx();
    store(p.out + i, pack_e4m3(load(p.in + 2 * i), load(p.in + 2 * i + 1)));
  }
};

// 16 bytes a thread: as f16, as bf16.
struct WidenE4M3 {
  struct Params {
    arch::GlobalPtr<const Words<4>> in;
    arch::GlobalPtr<Words<4>> out;  // [threads][4]
  };
  static constexpr int kThreads = 32, kClusterSize = 1, kMinArch = 90;  // sm_89 has it
  struct Storage {};
  PAGODA_DEVICE static void run(const Params& p) {
    const int i = thread_idx();
    Words<4> f16[2], bf16[2];
    widen_e4m3_f16(load(p.in + i), f16);
    widen_e4m3_bf16(load(p.in + i), bf16);
    for (int half = 0; half < 2; ++half) {
      store(p.out + 4 * i + half, f16[half]);
      store(p.out + 4 * i + 2 + half, bf16[half]);
    }
  }
};

struct BytePermute {
  struct Params {
    arch::GlobalPtr<const uint32_t> in;
    arch::GlobalPtr<uint32_t> out;  // [threads][2]
  };
  static constexpr int kThreads = 64, kClusterSize = 1, kMinArch = 80;
  struct Storage {};
  PAGODA_DEVICE static void run(const Params& p) {
    const int i = thread_idx();
    const uint32_t a = load(p.in + i), b = load(p.in + (i + 1) % kThreads);
    store(p.out + 2 * i, byte_permute(a, b, 0x5140));
    store(p.out + 2 * i + 1, byte_permute(a, b, 0x7362));
  }
};

// PTX ISA: ex2.approx.ftz is within 2^-22 relative.
inline void add_exp2_case(Cases& cases) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  Random random(71);
  std::vector<float> input{-inf, inf,  0,    -0.0F, nan, -126, -126.5F,
                           -127, -140, -200, 127,   128, 1000};
  std::vector<float> expected;
  while (input.size() < 1024) {
    const double share = static_cast<double>(random.integer(0, 1 << 24)) / (1 << 24);
    input.push_back(static_cast<float>(-125 + 252 * share));
  }
  for (const float x : input) {
    const double y = std::exp2(static_cast<double>(x));
    expected.push_back(y < 0x1p-126 ? 0.0F : static_cast<float>(y));  // .ftz
  }
  Case c = make_case<Exp2>("math/exp2_approx within 2 ulp", {.x = 4}, to_bytes(input), poison(4096),
                           to_bytes(expected), in_and_out<Exp2>());
  c.tolerance_ulp = 2;
  cases.push_back(std::move(c));
}

// PTX ISA: rcp.approx.ftz is within 1 ulp.
inline void add_reciprocal_case(Cases& cases) {
  const float inf = std::numeric_limits<float>::infinity();
  std::vector<float> input{1, -1, 3, inf, -inf, 0, -0.0F};
  while (input.size() < 512) input.push_back(static_cast<float>(input.size()));
  Random random(72);
  while (input.size() < 1024) {
    const auto mantissa = static_cast<float>(random.integer(1 << 23, (1 << 24) - 1));
    input.push_back(std::ldexp(mantissa, random.integer(-140, 90)));
  }
  std::vector<float> expected;
  for (const float x : input) expected.push_back(1 / x);
  Case c = make_case<Reciprocal>("math/reciprocal_approx within 1 ulp", {.x = 4}, to_bytes(input),
                                 poison(4096), to_bytes(expected), in_and_out<Reciprocal>());
  c.tolerance_ulp = 1;
  cases.push_back(std::move(c));
}

// Numbers around every rounding: random bits of moderate size, ties, overflow, zeros.
inline std::vector<float> numbers_to_pack(uint64_t seed) {
  Random random(seed);
  std::vector<float> values = {
      0.0F,     -0.0F,      1.0F,     -1.0F,    65504.0F,   65519.0F,   65520.0F,    1e6F,
      -1e6F,    448.0F,     463.9F,   464.0F,   480.0F,     -500.0F,    1e-9F,       0x1p-9F,
      0x1p-10F, 0x1.8p-10F, 0x1p-24F, 0x1p-25F, 0x1.8p-24F, 1.0078125F, 1.00390625F, 1.01171875F};
  while (values.size() < 512) {
    const auto mantissa = static_cast<float>(random.integer(-(1 << 23), 1 << 23));
    const float x = std::ldexp(mantissa, random.integer(-40, -6));
    // Every other one has few bits: ties of all three formats.
    const int32_t keep = random.integer(0, 1) == 0 ? -1 : ~((1 << random.integer(12, 20)) - 1);
    values.push_back(std::bit_cast<float>(std::bit_cast<int32_t>(x) & keep));
  }
  return values;
}

inline void add_pack_cases(Cases& cases) {
  const std::vector<float> input = numbers_to_pack(72);
  std::vector<uint32_t> halves(512);
  std::vector<uint16_t> eighths(256);
  for (size_t i = 0; i < 256; ++i) {
    const float low = input[2 * i], high = input[2 * i + 1];
    halves[i] = to_bf16(low) | static_cast<uint32_t>(to_bf16(high)) << 16;
    halves[256 + i] = to_f16(low) | static_cast<uint32_t>(to_f16(high)) << 16;
    eighths[i] = static_cast<uint16_t>(to_e4m3(low) | to_e4m3(high) << 8);
  }
  cases.push_back(make_case<PackHalves>("math/pack_bf16 pack_f16", {}, to_bytes(input),
                                        poison(2048), to_bytes(halves), in_and_out<PackHalves>()));
  cases.push_back(make_case<PackE4M3>("math/pack_e4m3", {}, to_bytes(input), poison(512),
                                      to_bytes(eighths), in_and_out<PackE4M3>()));
}

inline void add_widen_cases(Cases& cases) {
  // Every number, twice; a NaN is not the same on every target.
  std::vector<uint8_t> bytes(512);
  std::vector<uint16_t> expected;
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<uint8_t>(i % 128 == 127 ? 0 : i);
  }
  for (size_t thread = 0; thread < 32; ++thread) {
    for (const bool is_f16 : {true, false}) {
      for (size_t i = 0; i < 16; ++i) {
        const float value = core::f8e4m3_to_float(bytes[16 * thread + i]);
        expected.push_back(is_f16 ? to_f16(value) : to_bf16(value));
      }
    }
  }
  cases.push_back(make_case<WidenE4M3>("math/widen_e4m3", {}, to_bytes(bytes), poison(2048),
                                       to_bytes(expected), in_and_out<WidenE4M3>()));

  Random random(74);
  std::vector<uint32_t> words(64), permuted;
  for (uint32_t& word : words) {
    word = static_cast<uint32_t>(random.integer(-(1 << 30), 1 << 30)) * 3;
  }
  for (size_t i = 0; i < 64; ++i) {
    const auto byte = [&](uint32_t from) {
      const uint32_t word = words[(i + from / 4) % 64];
      return word >> 8 * (from % 4) & 0xffU;
    };
    permuted.push_back(byte(0) | byte(4) << 8U | byte(1) << 16U | byte(5) << 24U);
    permuted.push_back(byte(2) | byte(6) << 8U | byte(3) << 16U | byte(7) << 24U);
  }
  cases.push_back(make_case<BytePermute>("math/byte_permute", {}, to_bytes(words), poison(512),
                                         to_bytes(permuted), in_and_out<BytePermute>()));
}

inline void add_math_cases(Cases& cases) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  add_exp2_case(cases);
  add_reciprocal_case(cases);
  std::vector<float> input(256), expected(256);
  Random random(73);
  for (size_t i = 0; i < 256; ++i) {
    input[i] = i % 7 == 0 ? nan : static_cast<float>(random.integer(-9, 9));
  }
  for (size_t i = 0; i < 256; ++i) {  // a number wins against a NaN
    float largest = nan;
    for (size_t j = 0; j < 3; ++j) {
      const float x = input[(i + j) % 256];
      if (!(x <= largest) && !std::isnan(x)) largest = x;
    }
    expected[i] = largest;
  }
  cases.push_back(make_case<Max3>("math/max3", {}, to_bytes(input), poison(1024),
                                  to_bytes(expected), in_and_out<Max3>()));
  add_pack_cases(cases);
  add_widen_cases(cases);
}

}  // namespace pagoda::primitives
