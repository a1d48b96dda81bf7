// Token by token over a paged cache: append_kv writes the new key and value by slot mapping, then
// one query attends to all keys so far. The cache is bf16, its pages are allocated in reverse
// order, and unused slots hold NaN. Every step is checked against the double-precision reference.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include "pagoda/pagoda.hpp"

namespace {

constexpr int64_t kPages = 6, kPageSize = 16, kQHeads = 8, kKVHeads = 2, kHeadDim = 64;
constexpr int32_t kSteps = 75;  // the last page stays partly empty

// Truncates, which suffices for an example.
uint16_t to_bf16(float x) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16); }
float to_float(uint16_t bf16) { return std::bit_cast<float>(static_cast<uint32_t>(bf16) << 16); }

int report(const pagoda::Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}

}  // namespace

int main() {
  using pagoda::ConstTensor;
  using pagoda::DType;
  using pagoda::Tensor;
  std::vector<uint16_t> k_pool(kPages * kPageSize * kKVHeads * kHeadDim, 0x7fc0);  // NaN
  std::vector<uint16_t> v_pool(k_pool);
  const auto pool = [](auto& x) {
    return Tensor::contiguous(x.data(), DType::kBF16, {kPages, kPageSize, kKVHeads, kHeadDim});
  };
  const std::vector<int32_t> page_of{5, 4, 3, 2, 1, 0};  // the sequence's pages, in its order
  std::vector<float> k_new(kKVHeads * kHeadDim), v_new(k_new.size());
  std::vector<uint16_t> q(kQHeads * kHeadDim), o(q.size()), expected(q.size());
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  const auto next = [&] { return normal(random); };
  size_t wrong = 0;
  pagoda::Attention attention;
  for (int32_t token = 0; token < kSteps; ++token) {
    std::generate(k_new.begin(), k_new.end(), next);
    std::generate(v_new.begin(), v_new.end(), next);
    std::generate(q.begin(), q.end(), [&] { return to_bf16(next()); });

    const std::vector<int64_t> slot{page_of[static_cast<size_t>(token / kPageSize)] * kPageSize +
                                    token % kPageSize};
    const pagoda::AppendKV append{
        .k_new = ConstTensor::contiguous(k_new.data(), DType::kF32, {1, kKVHeads, kHeadDim}),
        .v_new = ConstTensor::contiguous(v_new.data(), DType::kF32, {1, kKVHeads, kHeadDim}),
        .slot_mapping = slot,
        .k_cache = pool(k_pool),
        .v_cache = pool(v_pool)};
    if (const auto status = pagoda::append_kv(append); !status) return report(status);

    const std::vector<int32_t> length{token + 1};
    attention.q = ConstTensor::contiguous(q.data(), DType::kBF16, {1, 1, kQHeads, kHeadDim});
    attention.kv =
        pagoda::PagedKV{.k = pool(k_pool),
                        .v = pool(v_pool),
                        .table = pagoda::BlockTable{{page_of.data(), 1, kPages, kPages}, length}};
    attention.out = Tensor::contiguous(o.data(), DType::kBF16, {1, 1, kQHeads, kHeadDim});
    if (const auto status = pagoda::run(attention); !status) return report(status);

    attention.out.data = expected.data();
    const pagoda::Options oracle{.backend = "reference"};
    if (const auto status = pagoda::run(attention, oracle); !status) return report(status);
    for (size_t i = 0; i < o.size(); ++i) {
      wrong += std::fabs(to_float(o[i]) - to_float(expected[i])) <= 0.02F ? 0 : 1;  // NaN is wrong
    }
  }
  std::printf("%zu elements differ from the reference\n", wrong);
  return wrong == 0 ? 0 : 1;
}
