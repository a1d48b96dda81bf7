// The CUDA runtime as the code that both GPU back ends share calls it (backends/gpu).
#pragma once

#include <string>

#include "arch/ptx/device.hpp"
#include "backends/cuda/devices.hpp"
#include "core/memory_space.hpp"

namespace pagoda::cuda {

struct Api {
  static constexpr const char* kBackend = "cuda";
  static constexpr DeviceType kDeviceType = DeviceType::kCuda;
  using Guard = arch::DeviceGuard;
  using Stream = cudaStream_t;
  using Event = cudaEvent_t;

  static std::string unsupported_reason(Device device) { return cuda::unsupported_reason(device); }
  static core::SpaceFacts facts(int32_t index) {
    const arch::DeviceProperties& found = arch::devices()[static_cast<size_t>(index)];
    return {.name = found.name,
            .driver = driver(),
            .num_multiprocessors = found.num_sms,
            .l2_bytes = found.l2_bytes,
            .memory_bytes = found.memory_bytes};
  }

  static void* allocate(size_t bytes) {
    void* memory = nullptr;
    arch::check(cudaMalloc(&memory, bytes), "allocating");
    return memory;
  }
  // MemorySpace::wait() reports asynchronous errors.
  static void free(void* memory) noexcept { static_cast<void>(cudaFree(memory)); }
  static void free_on(int32_t index, void* memory) noexcept {
    int before = 0;
    static_cast<void>(cudaGetDevice(&before));
    static_cast<void>(cudaSetDevice(index));
    free(memory);
    static_cast<void>(cudaSetDevice(before));
  }
  static int64_t free_bytes() {
    size_t free = 0, total = 0;
    arch::check(cudaMemGetInfo(&free, &total), "querying the free memory");
    return static_cast<int64_t>(free);
  }

  static void* allocate_staging(size_t bytes) {
    void* memory = nullptr;
    arch::check(cudaMallocHost(&memory, bytes), "allocating page-locked memory");
    return memory;
  }
  static void free_staging(void* memory) noexcept { static_cast<void>(cudaFreeHost(memory)); }

  static void copy_in(void* to, const void* from, size_t bytes) {
    arch::check(cudaMemcpy(to, from, bytes, cudaMemcpyHostToDevice), "copying to the device");
  }
  static void copy_out(void* to, const void* from, size_t bytes) {
    arch::check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "copying from the device");
  }
  static void copy_within(void* to, const void* from, size_t bytes) {
    arch::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, nullptr),
                "copying on the device");
  }
  static void fill(void* to, int value, size_t bytes) {
    arch::check(cudaMemsetAsync(to, value, bytes, nullptr), "filling memory of the device");
  }
  static void wait() { arch::check(cudaDeviceSynchronize(), "waiting for the device"); }

  static cudaEvent_t create_event() {
    cudaEvent_t event = nullptr;
    arch::check(cudaEventCreate(&event), "creating an event");
    return event;
  }
  static void destroy(cudaEvent_t event) noexcept { static_cast<void>(cudaEventDestroy(event)); }
  static void record(cudaEvent_t event) {
    arch::check(cudaEventRecord(event, nullptr), "recording an event");
  }
  static double seconds_between(cudaEvent_t begin, cudaEvent_t end) {
    float milliseconds = 0;
    arch::check(cudaEventElapsedTime(&milliseconds, begin, end), "querying an elapsed time");
    return static_cast<double>(milliseconds) * 1e-3;
  }

  static bool is_captured(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    arch::check(cudaStreamIsCapturing(stream, &status), "querying the capture status of a stream");
    return status != cudaStreamCaptureStatusNone;
  }
  static unsigned long long stream_id(cudaStream_t stream) {
    unsigned long long id = 0;
    arch::check(cudaStreamGetId(stream, &id), "querying the id of a stream");
    return id;
  }
  static void clear(void* memory, size_t bytes, cudaStream_t stream) {
    arch::check(cudaMemsetAsync(memory, 0, bytes, stream), "clearing a workspace");
  }
};

}  // namespace pagoda::cuda
