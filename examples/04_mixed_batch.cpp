// One call for a whole serving step: a fresh prompt, a chunk of a long prompt and two decodes, in
// one ragged batch over one paged cache with a causal sliding window. The call is planned once,
// run from the plan, and checked against the double-precision reference.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "pagoda/pagoda.hpp"

namespace {

constexpr int64_t kPages = 64, kPageSize = 16, kQHeads = 4, kKVHeads = 2, kHeadDim = 64;

std::vector<float> random_values(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) value = normal(random);
  return values;
}

int report(const pagoda::Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}

}  // namespace

int main() {
  using pagoda::ConstTensor;
  using pagoda::DType;
  // A prompt of 100 tokens, 64 more of one of 300, one token at 257 keys, one at 32; pages as CSR.
  const std::vector<int32_t> cu_seqlens_q{0, 100, 164, 165, 166};
  const std::vector<int32_t> indptr{0, 7, 26, 43, 45};
  const std::vector<int32_t> last_page_len{4, 12, 1, 16};
  std::vector<int32_t> indices(45);
  std::iota(indices.rbegin(), indices.rend(), 3);  // any order will do
  const int64_t total_q = cu_seqlens_q.back();

  const auto q = random_values(total_q * kQHeads * kHeadDim, 1);
  const auto k = random_values(kPages * kPageSize * kKVHeads * kHeadDim, 2);
  const auto v = random_values(kPages * kPageSize * kKVHeads * kHeadDim, 3);
  std::vector<float> o(q.size()), expected(q.size());
  const auto pool = [](const std::vector<float>& storage) {
    return ConstTensor::contiguous(storage.data(), DType::kF32,
                                   {kPages, kPageSize, kKVHeads, kHeadDim});
  };

  pagoda::Attention attention;
  attention.q = ConstTensor::contiguous(q.data(), DType::kF32, {total_q, kQHeads, kHeadDim});
  attention.cu_seqlens_q = cu_seqlens_q;
  attention.kv = pagoda::PagedKV{
      .k = pool(k), .v = pool(v), .table = pagoda::CsrPages{indptr, indices, last_page_len}};
  attention.mask = pagoda::Mask::window(127, 0);  // 128 keys, itself included
  attention.out = pagoda::Tensor::contiguous(o.data(), DType::kF32, {total_q, kQHeads, kHeadDim});

  const auto plan = pagoda::plan(attention);
  if (!plan) return report(plan.status());
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> workspace(static_cast<size_t>(plan->workspace_bytes() + 63) / 64);
  std::printf("kernel %s, %.1f MFLOP, workspace %lld bytes\n", plan->kernel().c_str(),
              plan->flops() / 1e6, static_cast<long long>(plan->workspace_bytes()));
  const std::span bytes = std::as_writable_bytes(std::span(workspace));
  if (const auto status = pagoda::run(*plan, attention, bytes); !status) return report(status);

  attention.out.data = expected.data();
  const auto status = pagoda::run(attention, {.backend = "reference"});
  if (!status) return report(status);
  size_t wrong = 0;
  for (size_t i = 0; i < o.size(); ++i) wrong += std::fabs(o[i] - expected[i]) <= 1e-4F ? 0 : 1;
  std::printf("%zu of %zu elements differ from the reference\n", wrong, o.size());
  return wrong == 0 ? 0 : 1;  // a NaN differs from everything
}
