// A functor that doubles the scores gives what twice the softmax scale gives.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "pagoda/emulator.hpp"
#include "pagoda/pagoda.hpp"
#include "twice.hpp"

int main() {
  constexpr int64_t kRows = 5, kKeys = 40, kDim = 64;
  const auto values = [](int64_t count, float step) {
    std::vector<uint16_t> bits;
    for (int64_t i = 0; i < count; ++i) {
      const float value = std::sin(step * static_cast<float>(i));
      bits.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
    }
    return bits;
  };
  std::vector<uint16_t> q = values(kRows * kDim, 0.7F), k = values(kKeys * kDim, 1.3F);
  std::vector<uint16_t> v = values(kKeys * kDim, 2.1F), out(q.size()), expected(q.size());
  const auto view = [](std::vector<uint16_t>& x, int64_t rows) {
    return pagoda::Tensor::contiguous(x.data(), pagoda::DType::kBF16, {1, rows, 1, kDim});
  };
  if (const pagoda::Status s = pagoda::register_emulator(); !s) return 1;
  for (const char* backend : {"cpu", "emu:sm80"}) {
    pagoda::Attention a{.q = view(q, kRows), .kv = pagoda::DenseKV{view(k, kKeys), view(v, kKeys)}};
    a.softmax_scale = 0.25F;
    a.out = view(expected, kRows);
    if (const pagoda::Status s = pagoda::run(a, {.backend = "cpu"}); !s) return 1;
    a.softmax_scale = 0.125F;
    a.functor = pagoda::functor("twice", Twice{});
    a.out = view(out, kRows);
    const pagoda::Status status = pagoda::run(a, {.backend = backend});
    if (!status) return std::puts(status.message().c_str()), 1;
    int wrong = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      const auto value = [i](const std::vector<uint16_t>& x) {
        return std::bit_cast<float>(uint32_t{x[i]} << 16);
      };
      if (!(std::abs(value(out) - value(expected)) <= 0.02F)) ++wrong;
    }
    std::printf("%s: %d wrong\n", backend, wrong);
  }
  return 0;
}
