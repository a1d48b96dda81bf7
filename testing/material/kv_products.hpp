// The products S = Q K' and O = P V of the warps of a CTA, with fragments from a KVBuffer, and what
// differs from plain loops in double precision.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "emulator/machine/launch.hpp"
#include "testing/material/expect_report.hpp"
#include "testing/material/kv_buffers.hpp"
#include "testing/material/kv_cache_case.hpp"

namespace pagoda::material {

enum class Fault { kNone, kDroppedRow, kWrongStage, kTwoPercent };

// D = A B of all warps, where B is K' (A: Q) or V (A: P). Warps of the same columns have the rows
// of a fragment each.
template <class Buffer_, int steps_>
struct ProductKernel {
  using Buffer = Buffer_;
  using T = typename Buffer::T;
  using TensorCore = typename Buffer::TensorCore;
  using I = typename TensorCore::Instruction;
  static constexpr int steps = steps_;
  static constexpr int kThreads = kThreadsOf<Buffer>, kWarpSize = kWarpSizeOf<Buffer>;
  static constexpr int kRows = TensorCore::shape.M * (4 / Buffer::num_warps_n);
  static constexpr int kInner = steps * Buffer::BK;
  static constexpr int kColumns = Buffer::num_warps_n * Buffer::config.wsize;
  static constexpr operand::VectorLayout a_layout = operand::panel_layout(kRows, kInner / 8);
  struct Params {
    arch::GlobalPtr<const T> a;  // [kRows, kInner], columns as the rows of B in shared memory
    operand::KVSource source;
    operand::KeyRows keys;
    int32_t num_b_rows;
    Fault fault;
    arch::GlobalPtr<float> d;  // [kRows, kColumns]
  };
  struct Storage {
    arch::SharedArray<T, kRows * kInner, 128> a;
    arch::SharedArray<T, Buffer::smem_layout.size() * 8, 128> b;
  };
  using D = float[Buffer::num_mmas][I::kRows * I::kColumns];

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    for (int i = arch::thread_idx(); i < kRows * kInner / 8; i += kThreads) {
      const int at = operand::vector_index<a_layout>(i / (kInner / 8), i % (kInner / 8));
      arch::store(storage.a.at(8 * at).template as<arch::Words<4>>(),
                  arch::load((params.a + 8 * i).template as<const arch::Words<4>>()));
    }
    const int warp = arch::thread_idx() / kWarpSize, warp_n = warp % Buffer::num_warps_n;
    const int first_row = warp / Buffer::num_warps_n * TensorCore::shape.M;
    Buffer buffer(storage.b.data(), warp_n);
    buffer.begin({params.source, params.keys, KVCacheCase::kSequence, 0},
                 params.num_b_rows - (params.fault == Fault::kDroppedRow ? 1 : 0));
    D d = {};
    for (int i = 0; i < kNumStages<Buffer>; ++i) buffer.load_from_dram();
    [&]<int... step>(std::integer_sequence<int, step...>) {
      (run_step<step>(params, buffer, first_row, d), ...);
    }
    (std::make_integer_sequence<int, steps>());
    for (int n = 0; n < Buffer::num_mmas; ++n) {
      for (int i = 0; i < I::kRows * I::kColumns; ++i) {
        const int row = first_row + I::row(arch::lane_idx(), i / I::kColumns);
        const int column = warp_n * Buffer::config.wsize + TensorCore::shape.N * n +
                           I::column(arch::lane_idx(), i % I::kColumns);
        arch::store(params.d + (row * kColumns + column),
                    params.fault == Fault::kTwoPercent ? 1.02F * d[n][i] : d[n][i]);
      }
    }
  }

 private:
  template <int step>
  static void run_step(const Params& params, Buffer& buffer, int first_row, D& d) {
    constexpr int stages = kNumStages<Buffer>;
    // NOLINTNEXTLINE(bugprone-branch-clone): the same where a buffer has one stage
    if (params.fault == Fault::kWrongStage) {
      buffer.template copy_to_shared<(step + 1) % stages>();
    } else {
      buffer.template copy_to_shared<step % stages>();
    }
    arch::syncthreads();
    if (step + stages < steps) buffer.load_from_dram();
    [&]<int... k>(std::integer_sequence<int, k...>) {
      (run_k_group<step, k>(buffer, first_row, d), ...);
    }
    (std::make_integer_sequence<int, Buffer::num_k_tiles>());
    arch::syncthreads();  // the next copy takes the tile
  }
  template <int step, int k>
  static void run_k_group(Buffer& buffer, int first_row, D& d) {
    buffer.template load_from_shared<k>();
    constexpr int group = TensorCore::group_size, k_group = step * Buffer::num_k_tiles + k;
    uint32_t a[group][I::kAWords];
    I::template load_a<a_layout, k_group * TensorCore::k_group / 8>(
        a, arch::shared_storage<Storage>().a.data(), first_row);
    for (int g = 0; g < group; ++g) {
      for (int n = 0; n < Buffer::num_mmas; ++n) {
        TensorCore::multiply(d[n], a[g], buffer.get_mma_tile()[n], g);
      }
    }
  }
};

template <class T>
float float_of(T element) {
  if constexpr (std::is_same_v<T, arch::Half>) {
    return core::f16_to_float(element.bits);
  } else {
    return core::bf16_to_float(element.bits);
  }
}
template <class T>
std::vector<T> random_elements(int count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<T> elements;
  elements.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) elements.push_back({bits_of<T>(uniform(random))});
  return elements;
}

struct Sum {
  double value = 0, magnitude = 0;  // of the terms, and of their absolute values

  void add(double term) {
    value += term;
    magnitude += std::abs(term);
  }
};
// The first sum in fp32 that is further from the exact one than its rounding; "" if none is. The
// products are exact, so that up to 128 additions lose at most 2^-24 of the magnitude each.
inline std::string difference(const std::vector<float>& actual, const std::vector<Sum>& expected) {
  if (actual.size() != expected.size()) return "sizes differ";
  for (size_t i = 0; i < actual.size(); ++i) {
    // NaN fails, too.
    if (!(std::abs(actual[i] - expected[i].value) <= 0x1p-17 * expected[i].magnitude)) {
      return "element " + std::to_string(i) + " is " + std::to_string(actual[i]) + " instead of " +
             std::to_string(expected[i].value);
    }
  }
  return "";
}

// `a`: [rows, inner]; element(k, n) of B.
template <class T, class Element>
std::vector<Sum> exact_product(const std::vector<T>& a, int rows, int inner, int columns,
                               Element element) {
  std::vector<Sum> d(static_cast<size_t>(rows * columns));
  for (int m = 0; m < rows; ++m) {
    for (int n = 0; n < columns; ++n) {
      for (int k = 0; k < inner; ++k) {
        d[static_cast<size_t>(m * columns + n)].add(
            static_cast<double>(float_of(a[static_cast<size_t>(m * inner + k)])) * element(k, n));
      }
    }
  }
  return d;
}

// P with each 16 columns in the order of V's keys, 0, 8, 1, 9, ..., 7, 15.
template <class T>
std::vector<T> in_order_of_transposed_v(const std::vector<T>& p) {
  std::vector<T> ordered(p.size());
  for (size_t i = 0; i < p.size(); ++i) ordered[i / 16 * 16 + i % 8 * 2 + i % 16 / 8] = p[i];
  return ordered;
}

// What differs from the plain product; "" if nothing does.
template <class Buffer, int steps>
std::string product_difference(const CacheFormat& format, int num_b_rows,
                               Fault fault = Fault::kNone) {
  using Kernel = ProductKernel<Buffer, steps>;
  using T = typename Buffer::T;
  const KVCacheCase cache(format, num_b_rows, 3);
  const std::vector<T> a = random_elements<T>(Kernel::kRows * Kernel::kInner, 4);
  const std::vector<T> ordered = kIsTransposed<Buffer> ? in_order_of_transposed_v(a) : a;
  std::vector<float> d(static_cast<size_t>(Kernel::kRows * Kernel::kColumns), NAN);
  const emulator::Result result = emulator::launch<Kernel>(
      emulator::shape_of<Kernel>("product", {1}),
      {ordered.data(), cache.source(), cache.keys(), num_b_rows, fault, d.data()},
      cache.buffers({emulator::input("a", ordered.data(), ordered.size()),
                     emulator::output("d", d.data(), d.size())}));
  if (!result.is_clean()) return emulator::all_reports(result);
  return difference(d, exact_product(a, Kernel::kRows, Kernel::kInner, Kernel::kColumns,
                                     [&](int k, int n) -> double {
                                       return kIsK<Buffer> ? cache.at(n, k) : cache.at(k, n);
                                     }));
}

}  // namespace pagoda::material
