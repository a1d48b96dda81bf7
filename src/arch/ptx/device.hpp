// The GPUs of this process: their properties, and which one is the thread's current device.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "arch/ptx/error.hpp"

namespace pagoda::arch {
inline namespace ptx {

struct DeviceProperties {
  std::string name;     // "NVIDIA H200"
  int32_t arch = 0;     // 90: compute capability 9.0
  int32_t num_sms = 0;  // multiprocessors
  int64_t l2_bytes = 0;
  int64_t memory_bytes = 0;
};

// Read from the driver once. Empty without a driver or a GPU; `devices_error()` says which.
[[nodiscard]] std::span<const DeviceProperties> devices();
[[nodiscard]] cudaError_t devices_error();

// Makes a device the thread's current one and restores the one before.
class DeviceGuard {
 public:
  explicit DeviceGuard(int32_t index) : index_(index) {
    check(cudaGetDevice(&before_), "reading the current device");
    if (before_ != index_) check(cudaSetDevice(index_), "setting the current device");
  }
  ~DeviceGuard() {
    if (before_ != index_) static_cast<void>(cudaSetDevice(before_));
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int index_ = 0;
  int before_ = 0;
};

}  // namespace ptx
}  // namespace pagoda::arch
