// Where memory lives and where kernels run.
#pragma once

#include <cstdint>

namespace pagoda {

enum class DeviceType : uint8_t { kCpu, kCuda };

struct Device {
  DeviceType type = DeviceType::kCpu;
  int32_t index = 0;

  friend constexpr bool operator==(Device, Device) = default;
};

[[nodiscard]] constexpr const char* name(DeviceType type) {
  return type == DeviceType::kCpu ? "cpu" : "cuda";
}

}  // namespace pagoda
