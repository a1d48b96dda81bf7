// Cross attention over ragged sequences, with offsets of their own for queries and keys, an
// attention sink per head and the LSE. With q = 0 and sink s, n keys give
//   LSE = log(n + e^s)   and   O = sum(V) / (n + e^s);   no key at all gives LSE = s and O = 0.
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "pagoda/pagoda.hpp"

int main() {
  constexpr int32_t kHeads = 4, kHeadDim = 32;
  constexpr std::array<int32_t, 4> kQueryOffsets{0, 5, 6, 9};      // 5, 1 and 3 queries
  constexpr std::array<int32_t, 4> kKeyOffsets{0, 100, 100, 117};  // 100, 0 and 17 keys
  constexpr std::array<float, kHeads> kSinks{0.0F, 1.0F, -2.0F, 3.0F};
  const std::vector<float> q(9 * kHeads * kHeadDim, 0.0F);
  const std::vector<float> k(117 * kHeads * kHeadDim, 1.0F);
  const std::vector<float> v(117 * kHeads * kHeadDim, 2.0F);
  std::vector<float> o(q.size());
  std::vector<float> lse(9 * kHeads);

  using pagoda::ConstTensor;
  using pagoda::DType;
  pagoda::Attention attention;
  attention.q = ConstTensor::contiguous(q.data(), DType::kF32, {9, kHeads, kHeadDim});
  attention.cu_seqlens_q = kQueryOffsets;
  attention.kv =
      pagoda::RaggedKV{.k = ConstTensor::contiguous(k.data(), DType::kF32, {117, kHeads, kHeadDim}),
                       .v = ConstTensor::contiguous(v.data(), DType::kF32, {117, kHeads, kHeadDim}),
                       .cu_seqlens_kv = kKeyOffsets};
  attention.sinks = kSinks;
  attention.out = pagoda::Tensor::contiguous(o.data(), DType::kF32, {9, kHeads, kHeadDim});
  attention.lse = pagoda::Tensor::contiguous(lse.data(), DType::kF32, {9, kHeads});

  if (const pagoda::Status status = pagoda::run(attention); !status) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  size_t wrong = 0;
  for (size_t sequence = 0; sequence < 3; ++sequence) {
    const auto keys = static_cast<float>(kKeyOffsets[sequence + 1] - kKeyOffsets[sequence]);
    for (int32_t row = kQueryOffsets[sequence]; row < kQueryOffsets[sequence + 1]; ++row) {
      for (int32_t head = 0; head < kHeads; ++head) {
        const float denominator = keys + std::exp(kSinks[static_cast<size_t>(head)]);
        const auto index = static_cast<size_t>(row * kHeads + head);
        wrong += std::fabs(lse[index] - std::log(denominator)) <= 1e-5F ? 0 : 1;
        for (size_t d = 0; d < kHeadDim; ++d) {
          const float expected = 2 * keys / denominator;
          wrong += std::fabs(o[index * kHeadDim + d] - expected) <= 1e-5F ? 0 : 1;
        }
      }
    }
  }
  std::printf("%zu of %zu numbers differ from the closed form\n", wrong, o.size() + lse.size());
  return wrong == 0 ? 0 : 1;
}
