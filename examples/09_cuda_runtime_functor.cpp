// A mask whose source is text, compiled while the program runs: each token sees itself and every
// n-th token before it, n being the program's argument. With q = 0 O is the mean of the visible
// values; here value i is i % 4. Exit code 77: there is no GPU, or no NVRTC.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <stdexcept>
#include <vector>

#include "pagoda/pagoda.hpp"
#include "pagoda/runtime_functor.hpp"

constexpr const char* kSource = R"(
#include "pagoda/functor.hpp"
struct EveryNth {
  int32_t n;
  PAGODA_FUNCTOR bool keep(const pagoda::QueryRow& row, int32_t key) const {
    return key <= row.position && (row.position - key) % n == 0;
  }
  PAGODA_FUNCTOR pagoda::VisibleKeys visible(const pagoda::QueryRows& rows) const {
    return {.keys = {0, rows.last_position() + 1}};
  }
  static constexpr bool kIsCausal = true;
};
)";
struct Value {  // of the same layout
  int32_t n;
};

constexpr int64_t kTokens = 1000, kHeads = 2, kDim = 64, kRow = kHeads * kDim;

static void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}
static pagoda::Tensor upload(const std::vector<uint16_t>& bf16) {  // it ends with the process
  void* memory = nullptr;
  check(cudaMalloc(&memory, 2 * bf16.size()));
  check(cudaMemcpy(memory, bf16.data(), 2 * bf16.size(), cudaMemcpyDefault));
  return pagoda::Tensor::contiguous(static_cast<uint16_t*>(memory), pagoda::DType::kBF16,
                                    {1, kTokens, kHeads, kDim}, {pagoda::DeviceType::kCuda, 0});
}

int main(int argc, char** argv) {
  const int32_t n = argc > 1 ? std::atoi(argv[1]) : 4;
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return 77;
  const auto compiled = pagoda::compile_functor({.name = "every_nth",
                                                 .type = "EveryNth",
                                                 .source = kSource,
                                                 .shapes = {"sm80.d64.bf16"}});  // on every GPU
  if (!compiled) {
    std::puts(compiled.status().message().c_str());
    return compiled.status().code() == pagoda::StatusCode::kNotFound ? 77 : 1;
  }
  std::vector<uint16_t> values(kTokens * kRow);
  for (size_t i = 0; i < values.size(); ++i) {  // bf16 is the upper half of a float
    const auto value = static_cast<float>(i / kRow % 4);
    values[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16U);
  }
  std::vector<uint16_t> out(values.size());
  pagoda::Attention a;
  a.q = upload(out);
  a.out = upload(out);
  a.kv = pagoda::DenseKV{upload(values), upload(values)};
  a.functor = pagoda::functor("every_nth", Value{n});
  if (const pagoda::Status s = pagoda::run(a); !s) return std::puts(s.message().c_str()), 1;
  check(cudaMemcpy(out.data(), a.out.data, 2 * out.size(), cudaMemcpyDefault));
  size_t wrong = 0;  // n = 4: each token sees its own value alone
  for (size_t i = 0; n % 4 == 0 && i < out.size(); ++i) wrong += out[i] == values[i] ? 0 : 1;
  std::printf("%d kernels compiled, %d of the cache; %zu elements are wrong\n",
              compiled->num_compiled, compiled->num_cached, wrong);
  return wrong == 0 ? 0 : 1;
}
