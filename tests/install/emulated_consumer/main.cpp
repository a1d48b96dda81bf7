// The kernels of an H200 and of a B200 agree with the reference on a machine without either GPU.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "pagoda/emulator.hpp"
#include "pagoda/pagoda.hpp"

namespace {

constexpr int64_t kRows = 5, kKeys = 40, kHeads = 2, kDim = 64;

std::vector<uint16_t> bf16_values(int64_t count, float step) {
  std::vector<uint16_t> values;
  for (int64_t i = 0; i < count; ++i) {
    const float value = std::sin(step * static_cast<float>(i));
    values.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
  }
  return values;
}

float to_float(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

}  // namespace

int main() {
  std::vector<uint16_t> q = bf16_values(kRows * kHeads * kDim, 0.7F);
  std::vector<uint16_t> k = bf16_values(kKeys * kHeads * kDim, 1.3F);
  std::vector<uint16_t> v = bf16_values(kKeys * kHeads * kDim, 2.1F);
  const auto view = [](std::vector<uint16_t>& x, int64_t rows) {
    return pagoda::Tensor::contiguous(x.data(), pagoda::DType::kBF16, {1, rows, kHeads, kDim});
  };
  const auto run_attention = [&](const char* backend) {
    std::vector<uint16_t> out(q.size(), 0x7fc0);  // NaN
    pagoda::Attention a{.q = view(q, kRows),
                        .kv = pagoda::DenseKV{view(k, kKeys), view(v, kKeys)},
                        .mask = pagoda::Mask::causal(),
                        .out = view(out, kRows)};
    const pagoda::Status status = pagoda::run(a, {.backend = backend});
    if (!status) std::printf("%s: %s\n", backend, status.message().c_str());
    return out;
  };
  for (int i = 0; i < 2; ++i) {  // a second time changes nothing
    if (const pagoda::Status s = pagoda::register_emulator(); !s) return std::puts("register"), 1;
  }
  if (pagoda::register_emulator({.num_sms = -1})) return std::puts("-1 multiprocessors"), 1;
  const std::vector<uint16_t> want = run_attention("reference");
  int wrong = 0;
  for (const char* backend : {"emu:sm90", "emu:sm100"}) {
    const std::vector<uint16_t> got = run_attention(backend);
    for (size_t i = 0; i < got.size(); ++i) {
      // Two roundings to bf16, of P and of O; no value exceeds 1.
      if (!(std::abs(to_float(got[i]) - to_float(want[i])) <= 0.02F)) ++wrong;
    }
    std::printf("%s: %zu values\n", backend, got.size());
  }
  std::printf("%d wrong\n", wrong);
  return wrong == 0 ? 0 : 1;
}
