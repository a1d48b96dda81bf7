// Decode on a GPU: device tensors, a stream, and a CUDA graph that is captured once and replayed
// while two sequences, which share their pages, grow. With q = 0 O is the mean of the values: 1 for
// the first 100 tokens, 0 for the others. Exit code 77: there is no GPU.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cuda_runtime.h>
#include <stdexcept>
#include <vector>

#include "pagoda/pagoda.hpp"

constexpr int64_t kBatch = 2, kHeads = 8, kDim = 64, kRow = kHeads * kDim;
constexpr int64_t kPageSize = 16, kPages = 40;
constexpr pagoda::Device kGpu{pagoda::DeviceType::kCuda, 0};

static void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}
static void check(const pagoda::Status& status) {
  if (!status) throw std::runtime_error(status.message());
}
template <typename T>
static T* upload(const std::vector<T>& values) {  // it ends with the process
  void* memory = nullptr;
  check(cudaMalloc(&memory, values.size() * sizeof(T)));
  check(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyDefault));
  return static_cast<T*>(memory);
}
static pagoda::Tensor bf16(uint16_t* data, std::initializer_list<int64_t> shape) {
  return pagoda::Tensor::contiguous(data, pagoda::DType::kBF16, shape, kGpu);
}

int main() {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) return 77;
  std::vector<uint16_t> o(kBatch * kRow), cache(kPages * kPageSize * kRow);
  std::fill_n(cache.begin(), 100 * kRow, 0x3f80);  // 1 in bf16
  std::vector<int32_t> pages(kBatch * kPages), lengths{1, 500};
  for (size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<int32_t>(i % kPages);
  int32_t* const lengths_on_gpu = upload(lengths);
  pagoda::Attention a;
  a.q = bf16(upload(o), {kBatch, 1, kHeads, kDim});
  a.out = bf16(upload(o), {kBatch, 1, kHeads, kDim});
  const auto pool = bf16(upload(cache), {kPages, kPageSize, kHeads, kDim});
  a.kv = pagoda::PagedKV{.k = pool,
                         .v = pool,
                         .table = pagoda::BlockTable{{upload(pages), kBatch, kPages, kPages, kGpu},
                                                     {lengths_on_gpu, kBatch, kGpu}}};
  const auto plan = pagoda::plan(a);  // for all lengths that the table holds
  check(plan.status());
  const std::vector<std::byte> zeros(static_cast<size_t>(plan->workspace_bytes()) + 1);
  const std::span workspace(upload(zeros), zeros.size());

  cudaStream_t stream = nullptr;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t step = nullptr;
  check(cudaStreamCreate(&stream));
  check(pagoda::run(*plan, a, workspace, {stream}));  // loads the kernels: a capture must not
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  check(pagoda::run(*plan, a, workspace, {stream}));
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaGraphInstantiate(&step, graph, 0));
  int wrong = 0;
  for (int token = 0; token < 120; ++token) {
    for (int32_t& length : lengths) ++length;  // append_kv() would write the new keys
    check(cudaMemcpyAsync(lengths_on_gpu, lengths.data(), 4 * kBatch, cudaMemcpyDefault, stream));
    check(cudaGraphLaunch(step, stream));
    check(cudaMemcpyAsync(o.data(), a.out.data, 2 * o.size(), cudaMemcpyDefault, stream));
    check(cudaStreamSynchronize(stream));
    for (size_t i = 0; i < o.size(); ++i) {
      const auto want = std::fmin(100.0F / static_cast<float>(lengths[i / kRow]), 1.0F);
      wrong += std::fabs(std::bit_cast<float>(uint32_t{o[i]} << 16U) - want) <= 4e-3F ? 0 : 1;
    }
  }
  std::printf("kernel %s: %d elements differ\n", plan->kernel().c_str(), wrong);
  return wrong == 0 ? 0 : 1;
}
