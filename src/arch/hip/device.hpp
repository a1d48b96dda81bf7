// The AMD GPUs of this process: their properties, and which one is the thread's current device.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "arch/hip/runtime.hpp"

namespace pagoda::arch {
inline namespace hip {

struct DeviceProperties {
  std::string name;      // "AMD Instinct MI300X"
  std::string target;    // "gfx942"
  int32_t arch = 0;      // 942; 0 where the target is no number ("gfx90a")
  int32_t num_cus = 0;   // compute units
  int64_t l2_bytes = 0;  // of a chiplet
  int64_t memory_bytes = 0;
};

// Read from the runtime once. Empty without a runtime or a GPU; devices_obstacle() says why.
[[nodiscard]] std::span<const DeviceProperties> devices();
[[nodiscard]] const std::string& devices_obstacle();

// Makes a device the thread's current one and restores the one before.
class DeviceGuard {
 public:
  explicit DeviceGuard(int32_t index) : index_(index) {
    check(runtime().GetDevice(&before_), "reading the current device");
    if (before_ != index_) check(runtime().SetDevice(index_), "setting the current device");
  }
  ~DeviceGuard() {
    if (before_ != index_) static_cast<void>(runtime().SetDevice(before_));
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int index_ = 0;
  int before_ = 0;
};

}  // namespace hip
}  // namespace pagoda::arch
