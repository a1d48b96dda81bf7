// A mask of one's own: three documents packed into one sequence, with a common prefix that all of
// them see (functors/documents.hpp; functors/documents.cpp registers it, CMakeLists.txt compiles
// it). The result is compared with that of the same mask as bits.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

#include "functors/documents.hpp"
#include "pagoda/pagoda.hpp"

namespace {

constexpr int64_t kTokens = 300, kQHeads = 4, kKVHeads = 2, kHeadDim = 128;
constexpr int32_t kPrefix = 20;

// Truncates, which suffices for an example.
uint16_t to_bf16(float x) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16); }
float to_float(uint16_t bf16) { return std::bit_cast<float>(static_cast<uint32_t>(bf16) << 16); }

std::vector<uint16_t> random_values(int64_t count) {
  static std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<uint16_t> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(to_bf16(normal(random)));
  return values;
}

}  // namespace

int main() {
  using pagoda::DType;
  using pagoda::Tensor;
  const std::vector<int32_t> begins{0, 75, 200};  // the first token of each document
  std::vector<uint16_t> q = random_values(kTokens * kQHeads * kHeadDim);
  std::vector<uint16_t> k = random_values(kTokens * kKVHeads * kHeadDim);
  std::vector<uint16_t> v = random_values(kTokens * kKVHeads * kHeadDim);
  std::vector<uint16_t> out(q.size()), expected(q.size());
  const auto view = [](std::vector<uint16_t>& x, int64_t heads) {
    return Tensor::contiguous(x.data(), DType::kBF16, {1, kTokens, heads, kHeadDim});
  };
  pagoda::Attention a;
  a.q = view(q, kQHeads);
  a.kv = pagoda::DenseKV{view(k, kKVHeads), view(v, kKVHeads)};
  a.out = view(out, kQHeads);
  const pagoda::ArrayView<int32_t> view_of_begins = begins;
  const Documents documents{view_of_begins, static_cast<int32_t>(begins.size()), kPrefix};
  a.functor = pagoda::functor("documents", documents, view_of_begins);
  if (const pagoda::Status s = pagoda::run(a); !s) return std::puts(s.message().c_str()), 1;

  // Bit k of row i: whether the token sees the key.
  constexpr int64_t kWords = (kTokens + 31) / 32;
  std::vector<uint32_t> words(kTokens * kWords);
  for (int64_t i = 0; i < kTokens; ++i) {
    const int64_t begin = i < 75 ? 0 : (i < 200 ? 75 : 200);
    for (int64_t key = 0; key < kTokens; ++key) {
      const bool is_seen = key < kPrefix || (begin <= key && key <= i);
      if (is_seen) words[static_cast<size_t>(i * kWords + key / 32)] |= 1U << (key % 32);
    }
  }
  const std::vector<int64_t> offsets{0, kTokens * kWords};
  a.functor = {};
  a.mask = pagoda::Mask::bits(words, offsets);
  a.out = view(expected, kQHeads);
  if (const pagoda::Status s = pagoda::run(a); !s) return std::puts(s.message().c_str()), 1;
  size_t wrong = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    wrong += std::fabs(to_float(out[i]) - to_float(expected[i])) <= 0.02F ? 0 : 1;  // NaN is wrong
  }
  std::printf("%zu elements differ from the mask as bits\n", wrong);
  return wrong == 0 ? 0 : 1;
}
