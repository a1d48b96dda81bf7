// One query over two keys that score alike: the result is the mean of the two values, 1.5.
#include <cstdio>
#include <vector>

#include "pagoda/pagoda.hpp"

int main() {
  std::vector<float> q(8, 0.0F), k(16, 1.0F), v(16, 1.0F), o(8);
  for (int i = 8; i < 16; ++i) v[i] = 2.0F;
  const auto view = [](auto& x, int64_t rows) {
    return pagoda::Tensor::contiguous(x.data(), pagoda::DType::kF32, {1, rows, 1, 8});
  };
  pagoda::Attention a{
      .q = view(q, 1), .kv = pagoda::DenseKV{view(k, 2), view(v, 2)}, .out = view(o, 1)};
  if (const auto status = pagoda::run(a); !status) return std::puts(status.message().c_str()), 1;
  std::printf("%g\n", o[7]);
  return o[7] == 1.5F ? 0 : 1;
}
