// Causal prefill over dense tensors, the result known in closed form: with q = 0 every visible key
// weighs the same, so that row i is the mean of the values 0..i.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "pagoda/pagoda.hpp"

int main() {
  constexpr int64_t kBatch = 2, kTokens = 300, kQHeads = 8, kKVHeads = 2, kHeadDim = 64;
  std::vector<float> q(kBatch * kTokens * kQHeads * kHeadDim, 0.0F);
  std::vector<float> k(kBatch * kTokens * kKVHeads * kHeadDim, 0.25F);
  std::vector<float> v(k.size());
  std::vector<float> o(q.size());
  for (size_t i = 0; i < v.size(); ++i) {
    v[i] = static_cast<float>(i / (kKVHeads * kHeadDim) % kTokens);  // its token's index
  }

  using pagoda::DType;
  pagoda::Attention attention;
  attention.q =
      pagoda::ConstTensor::contiguous(q.data(), DType::kF32, {kBatch, kTokens, kQHeads, kHeadDim});
  attention.kv = pagoda::DenseKV{.k = pagoda::ConstTensor::contiguous(
                                     k.data(), DType::kF32, {kBatch, kTokens, kKVHeads, kHeadDim}),
                                 .v = pagoda::ConstTensor::contiguous(
                                     v.data(), DType::kF32, {kBatch, kTokens, kKVHeads, kHeadDim})};
  attention.mask = pagoda::Mask::causal();
  attention.out =
      pagoda::Tensor::contiguous(o.data(), DType::kF32, {kBatch, kTokens, kQHeads, kHeadDim});

  if (const pagoda::Status status = pagoda::run(attention); !status) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  size_t wrong = 0;
  for (size_t i = 0; i < o.size(); ++i) {
    const auto row = static_cast<float>(i / (kQHeads * kHeadDim) % kTokens);
    wrong += std::fabs(o[i] - row / 2) <= 1e-3F ? 0 : 1;
  }
  std::printf("%zu of %zu elements differ from the closed form\n", wrong, o.size());
  return wrong == 0 ? 0 : 1;
}
