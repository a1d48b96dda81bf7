// Allocation, copies, capture.
#include "device_batch.hpp"

#include <stdexcept>

namespace pagoda::cuda_tests {
namespace {

void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(error));
}

template <typename T>
DeviceArray<T> allocate(int64_t count) {
  void* p = nullptr;
  check(cudaMalloc(&p, static_cast<size_t>(count) * sizeof(T) + 1), "cudaMalloc");
  return DeviceArray<T>(static_cast<T*>(p));
}

template <typename T>
void upload(const DeviceArray<T>& to, const std::vector<T>& from) {
  check(cudaMemcpy(to.get(), from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice),
        "copying to the device");
}

template <typename T>
std::vector<T> download(const DeviceArray<T>& from, int64_t count) {
  std::vector<T> values(static_cast<size_t>(count));
  check(cudaMemcpy(values.data(), from.get(), values.size() * sizeof(T), cudaMemcpyDeviceToHost),
        "copying to the host");
  return values;
}

}  // namespace

// Non-blocking: the tests must not depend on the order of the default stream.
CudaStream::CudaStream() {
  check(cudaStreamCreateWithFlags(&handle_, cudaStreamNonBlocking), "creating a stream");
}

void CudaStream::wait() const { check(cudaStreamSynchronize(handle_), "waiting for a stream"); }

void CudaGraph::begin(const CudaStream& stream) {
  check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeGlobal), "beginning a capture");
}

void CudaGraph::end(const CudaStream& stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream.get(), &status), "asking for the capture");
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream.get(), &graph), "ending a capture");
  if (status != cudaStreamCaptureStatusActive) {
    throw std::runtime_error("the capture was invalidated: something allocated or waited");
  }
  check(cudaGraphGetNodes(graph, nullptr, &num_nodes_), "counting a graph's nodes");
  check(cudaGraphInstantiate(&executable_, graph, 0), "instantiating a graph");
  check(cudaGraphDestroy(graph), "destroying a graph");
}

void CudaGraph::replay(const CudaStream& stream) const {
  check(cudaGraphLaunch(executable_, stream.get()), "launching a graph");
}

DeviceBatch::DeviceBatch(const BatchShape& shape)
    : shape_(shape),
      q_(allocate<uint16_t>(shape.rows() * shape.q_heads * shape.dim)),
      k_(allocate<uint16_t>(shape.num_pages() * shape.kv_heads * shape.page_size * shape.dim)),
      v_(allocate<uint16_t>(shape.num_pages() * shape.kv_heads * shape.page_size * shape.dim)),
      out_(allocate<uint16_t>(shape.rows() * shape.q_heads * shape.dim)),
      lse_(allocate<float>(shape.rows() * shape.q_heads)),
      cu_seqlens_q_(allocate<int32_t>(shape.batch + 1)),
      seqlens_kv_(allocate<int32_t>(shape.batch)),
      table_(allocate<int32_t>(shape.batch * shape.pages_a_sequence())),
      memory_{.q = q_.get(),
              .k = k_.get(),
              .v = v_.get(),
              .out = out_.get(),
              .lse = lse_.get(),
              .cu_seqlens_q = cu_seqlens_q_.get(),
              .seqlens_kv = seqlens_kv_.get(),
              .table = table_.get(),
              .device = {DeviceType::kCuda, 0}} {
  Result<Plan> planned = pagoda::plan(attention(), {.backend = "cuda"});
  if (!planned) throw std::runtime_error("plan: " + planned.status().message());
  plan_ = std::make_unique<Plan>(*std::move(planned));
  workspace_ = allocate<std::byte>(plan_->workspace_bytes());
  // Fills all but the zeroed prefix with garbage.
  check(cudaMemset(workspace_.get(), 0xff, static_cast<size_t>(plan_->workspace_bytes())), "dirt");
  check(cudaMemset(workspace_.get(), 0, static_cast<size_t>(plan_->zeroed_workspace_bytes())),
        "zeros");
  check(cudaDeviceSynchronize(), "waiting");
}

void DeviceBatch::load(const PagedBatch& step, const CudaStream& stream) {
  stream.wait();
  upload(q_, step.q);
  upload(k_, step.k);
  upload(v_, step.v);
  upload(cu_seqlens_q_, step.cu_seqlens_q);
  upload(seqlens_kv_, step.seqlens_kv);
  upload(table_, step.table);
  const auto heads = static_cast<size_t>(shape_.rows() * shape_.q_heads);
  const auto out_bytes = heads * static_cast<size_t>(shape_.dim) * sizeof(uint16_t);
  check(cudaMemset(out_.get(), 0xff, out_bytes), "poisoning O");
  check(cudaMemset(lse_.get(), 0xff, heads * sizeof(float)), "poisoning the LSE");
  check(cudaDeviceSynchronize(), "waiting");
}

void DeviceBatch::run(const CudaStream& stream) {
  const auto bytes = static_cast<size_t>(plan_->workspace_bytes());
  const Status status =
      pagoda::run(*plan_, attention(), {workspace_.get(), bytes}, stream.stream());
  if (!status) throw std::runtime_error("run: " + status.message());
}

std::vector<uint16_t> DeviceBatch::out(const CudaStream& stream) const {
  stream.wait();
  return download(out_, shape_.rows() * shape_.q_heads * shape_.dim);
}

std::string DeviceBatch::difference(const PagedBatch& step, const CudaStream& stream) const {
  const std::vector<uint16_t> values = out(stream);
  return step.difference(values, download(lse_, shape_.rows() * shape_.q_heads));
}

}  // namespace pagoda::cuda_tests
