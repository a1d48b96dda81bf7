// DeviceBatch: the arrays of a BatchShape at fixed GPU addresses, and a plan over them.
#pragma once

#include <cuda_runtime.h>
#include <memory>
#include <string>
#include <vector>

#include "paged_batch.hpp"

namespace pagoda::cuda_tests {

// cudaMalloc'd, freed with it.
struct DeviceFree {
  void operator()(void* p) const { static_cast<void>(cudaFree(p)); }
};
template <typename T>
using DeviceArray = std::unique_ptr<T[], DeviceFree>;

class CudaStream {
 public:
  CudaStream();
  ~CudaStream() { static_cast<void>(cudaStreamDestroy(handle_)); }
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  [[nodiscard]] cudaStream_t get() const { return handle_; }
  [[nodiscard]] Stream stream() const { return {handle_}; }
  void wait() const;

 private:
  cudaStream_t handle_ = nullptr;
};

// A CUDA graph, captured from one stream between begin and end.
class CudaGraph {
 public:
  // `launch` may only launch into the stream. Capture mode global: an allocation or a
  // synchronisation by this thread fails the capture, and this throws.
  template <typename Launch>
  CudaGraph(const CudaStream& stream, const Launch& launch) {
    begin(stream);
    launch();
    end(stream);
  }
  ~CudaGraph() { static_cast<void>(cudaGraphExecDestroy(executable_)); }
  CudaGraph(const CudaGraph&) = delete;
  CudaGraph& operator=(const CudaGraph&) = delete;

  void replay(const CudaStream& stream) const;
  [[nodiscard]] size_t num_nodes() const { return num_nodes_; }

 private:
  static void begin(const CudaStream& stream);
  void end(const CudaStream& stream);

  cudaGraphExec_t executable_ = nullptr;
  size_t num_nodes_ = 0;
};

class DeviceBatch {
 public:
  explicit DeviceBatch(const BatchShape& shape);

  // Copies a step's arrays, and poison for its outputs, to the same addresses; ordered by `stream`.
  void load(const PagedBatch& step, const CudaStream& stream);
  // Launches; throws if run() fails.
  void run(const CudaStream& stream);
  // Synchronises, then compares.
  [[nodiscard]] std::string difference(const PagedBatch& step, const CudaStream& stream) const;
  [[nodiscard]] std::vector<uint16_t> out(const CudaStream& stream) const;

  [[nodiscard]] Attention attention() const { return attention_over(shape_, memory_); }
  [[nodiscard]] const Plan& plan() const { return *plan_; }
  [[nodiscard]] BatchMemory& memory() { return memory_; }

 private:
  BatchShape shape_;
  DeviceArray<uint16_t> q_, k_, v_, out_;
  DeviceArray<float> lse_;
  DeviceArray<int32_t> cu_seqlens_q_, seqlens_kv_, table_;
  DeviceArray<std::byte> workspace_;
  BatchMemory memory_;
  std::unique_ptr<Plan> plan_;
};

}  // namespace pagoda::cuda_tests
