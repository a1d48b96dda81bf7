// out = sum_i exp(lse_i - m) out_i / sum_i exp(lse_i - m), m the largest lse, in the parts' order.
#include "backends/cpu/merge_states.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "backends/cpu/parallel_shares.hpp"
#include "core/array_elements.hpp"
#include "core/element.hpp"

namespace pagoda::cpu {
namespace {

constexpr int64_t kBlock = 64;  // output elements accumulated at a time
constexpr int64_t kElementsPerShare = 8192;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Weights of the parts of one (row, head).
struct Parts {
  const MergeStates& merge;
  int64_t row, head;

  // What one unit of the LSEs is in natural units.
  [[nodiscard]] double unit() const {
    return merge.lse_base == LogBase::k2 ? std::numbers::ln2 : 1.0;
  }
  [[nodiscard]] int64_t count() const { return merge.partial_lse.shape[0]; }
  [[nodiscard]] float lse(int64_t part) const {
    const ConstTensor& t = merge.partial_lse;
    return core::load_element(t.data, DType::kF32,
                              part * t.strides[0] + row * t.strides[1] + head * t.strides[2]);
  }
  [[nodiscard]] float out(int64_t part, int64_t column) const {
    const ConstTensor& t = merge.partial_out;
    return core::load_element(
        t.data, t.dtype, part * t.strides[0] + row * t.strides[1] + head * t.strides[2] + column);
  }
};

// Zero if every part has LSE = -infinity. A NaN or +infinity among the LSEs makes `sum`, and
// thereby the output, NaN.
struct Weights {
  double unit = 1;
  float largest = -kInfinity;
  double sum = 0;

  explicit Weights(const Parts& parts) : unit(parts.unit()) {
    for (int64_t i = 0; i < parts.count(); ++i) largest = std::max(largest, parts.lse(i));
    for (int64_t i = 0; i < parts.count(); ++i) sum += weight(parts.lse(i));
  }
  [[nodiscard]] double weight(float lse) const {
    return lse == -kInfinity ? 0.0 : std::exp((double{lse} - double{largest}) * unit);
  }
};

void merge_row(const Parts& parts) {
  const MergeStates& merge = parts.merge;
  const Weights weights(parts);
  const Tensor& out = merge.out;
  const int64_t columns = out.shape[2];
  const int64_t target = parts.row * out.strides[0] + parts.head * out.strides[1];
  for (int64_t begin = 0; begin < columns; begin += kBlock) {
    const int64_t n = std::min(kBlock, columns - begin);
    std::array<double, kBlock> sums{};
    for (int64_t i = 0; i < parts.count(); ++i) {
      const float lse = parts.lse(i);
      if (lse == -kInfinity) continue;  // its O may hold anything, NaN included
      const double weight = weights.weight(lse) / weights.sum;
      for (int64_t c = 0; c < n; ++c) {
        sums[static_cast<size_t>(c)] += weight * double{parts.out(i, begin + c)};
      }
    }
    for (int64_t c = 0; c < n; ++c) {
      core::store_element(out.data, out.dtype, target + begin + c,
                          static_cast<float>(sums[static_cast<size_t>(c)]));
    }
  }
  if (merge.lse.present()) {
    const double lse =
        double{weights.largest} + std::log(weights.sum) / weights.unit;  // log(0): -inf
    core::store_element(merge.lse.data, DType::kF32,
                        parts.row * merge.lse.strides[0] + parts.head * merge.lse.strides[1],
                        static_cast<float>(lse));
  }
}

}  // namespace

void merge_states(const MergeStates& merge, Executor& executor) {
  const std::span<const uint8_t> mask = core::elements(merge.row_mask);
  const int64_t heads = merge.out.shape[1];
  const int64_t elements = merge.partial_out.shape[0] * merge.out.shape[2];  // per row and head
  parallel_shares(executor, merge.out.shape[0] * heads, kElementsPerShare / (elements + 1) + 1,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const int64_t row = i / heads;
                      const bool is_skipped = !mask.empty() && mask[static_cast<size_t>(row)] == 0;
                      if (!is_skipped) merge_row({merge, row, i % heads});
                    }
                  });
}

}  // namespace pagoda::cpu
