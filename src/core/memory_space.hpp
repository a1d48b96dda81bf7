// MemorySpace: allocates, copies and times in the memory that a back end's kernels read. Tests and
// the command use it; the library itself does not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <vector>

#include "pagoda/device.hpp"

namespace pagoda::core {

// The device properties that are reported with a measurement.
struct SpaceFacts {
  std::string name;    // "NVIDIA H200"
  std::string driver;  // "CUDA 13.0"
  int32_t num_multiprocessors = 0;
  int64_t l2_bytes = 0;
  int64_t memory_bytes = 0;
};

// All operations are ordered by the device's default stream. On a device error they throw
// std::bad_alloc or another std::exception whose message names the error.
class MemorySpace {
 public:
  MemorySpace() = default;
  MemorySpace(const MemorySpace&) = delete;
  MemorySpace& operator=(const MemorySpace&) = delete;
  virtual ~MemorySpace() = default;

  [[nodiscard]] virtual Device device() const = 0;
  [[nodiscard]] virtual SpaceFacts facts() const = 0;
  [[nodiscard]] bool is_host() const { return device().type == DeviceType::kCpu; }

  // Aligned to 256 bytes; uninitialised.
  [[nodiscard]] virtual std::byte* allocate(int64_t bytes) = 0;
  virtual void release(std::byte* memory) noexcept = 0;
  [[nodiscard]] virtual int64_t free_bytes() = 0;  // 0 = unknown

  // Host memory that copy_in reads fastest (page-locked memory of a CUDA device), aligned to 256
  // bytes; uninitialised.
  [[nodiscard]] virtual std::byte* allocate_staging(int64_t bytes) {
    return static_cast<std::byte*>(::operator new(static_cast<size_t>(bytes), kStagingAlignment));
  }
  virtual void release_staging(std::byte* memory) noexcept {
    ::operator delete(memory, kStagingAlignment);
  }

  // Synchronous for the host: `from_host` may be reused, `to_host` is filled, when they return.
  virtual void copy_in(std::byte* to, const void* from_host, int64_t bytes) = 0;
  virtual void copy_out(void* to_host, const std::byte* from, int64_t bytes) = 0;
  // Asynchronous: they may return before the work is complete.
  virtual void copy_within(std::byte* to, const std::byte* from, int64_t bytes) = 0;
  virtual void fill(std::byte* to, std::byte value, int64_t bytes) = 0;
  // Synchronises the device. Asynchronous errors of earlier launches surface here.
  virtual void wait() = 0;

  // Runs `launch` `repeats` times and returns the seconds of each run. On a GPU: measured with
  // events, without host overhead, after a flush of the L2 cache.
  [[nodiscard]] virtual std::vector<double> time(int64_t repeats,
                                                 const std::function<void()>& launch) = 0;

 private:
  static constexpr std::align_val_t kStagingAlignment{256};
};

}  // namespace pagoda::core
