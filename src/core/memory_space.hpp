// MemorySpace: the memory that a back end's kernels read, as those see it who bring calls there: tests
// and the command. The library itself allocates and copies nothing through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "pagoda/device.hpp"

namespace pagoda::core {

// What a measurement must be said with.
struct SpaceFacts {
  std::string name;    // "NVIDIA H200"
  std::string driver;  // "CUDA 13.0"
  int32_t num_multiprocessors = 0;
  int64_t l2_bytes = 0;
  int64_t memory_bytes = 0;
};

// In the order of the default stream: what is asked for after a launch into it comes after it.
// Everything throws where the device has an error: std::bad_alloc, or another exception in words.
class MemorySpace {
 public:
  MemorySpace() = default;
  MemorySpace(const MemorySpace&) = delete;
  MemorySpace& operator=(const MemorySpace&) = delete;
  virtual ~MemorySpace() = default;

  [[nodiscard]] virtual Device device() const = 0;
  [[nodiscard]] virtual SpaceFacts facts() const = 0;
  [[nodiscard]] bool is_host() const { return device().type == DeviceType::kCpu; }

  // Aligned to 256 bytes; holds anything.
  [[nodiscard]] virtual std::byte* allocate(int64_t bytes) = 0;
  virtual void release(std::byte* memory) noexcept = 0;
  [[nodiscard]] virtual int64_t free_bytes() = 0;  // 0: unknown

  // The host's side of a copy is free, or filled, when these return.
  virtual void copy_in(std::byte* to, const void* from_host, int64_t bytes) = 0;
  virtual void copy_out(void* to_host, const std::byte* from, int64_t bytes) = 0;
  // These may return before it is done.
  virtual void copy_within(std::byte* to, const std::byte* from, int64_t bytes) = 0;
  virtual void fill(std::byte* to, std::byte value, int64_t bytes) = 0;
  // Returns when all that was launched is done; a fault of a kernel comes to light here.
  virtual void wait() = 0;

  // Seconds of each of `repeats` runs of what `launch` starts. On a device: by its own clock, without
  // the host's part, with a second level cache that holds nothing of the call.
  [[nodiscard]] virtual std::vector<double> time(int64_t repeats,
                                                 const std::function<void()>& launch) = 0;
};

}  // namespace pagoda::core
