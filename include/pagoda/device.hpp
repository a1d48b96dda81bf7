// Where memory lives, where kernels run, and in which order.
#pragma once

#include <cstdint>

namespace pagoda {

enum class DeviceType : uint8_t { kCpu, kCuda };

struct Device {
  DeviceType type = DeviceType::kCpu;
  int32_t index = 0;

  friend constexpr bool operator==(Device, Device) = default;
};

// A queue of a device: what is launched into one runs in order. Back ends of the host ignore it.
struct Stream {
  void* handle = nullptr;  // a cudaStream_t; null = the device's default stream

  friend constexpr bool operator==(Stream, Stream) = default;
};

[[nodiscard]] constexpr const char* name(DeviceType type) {
  return type == DeviceType::kCpu ? "cpu" : "cuda";
}

}  // namespace pagoda
