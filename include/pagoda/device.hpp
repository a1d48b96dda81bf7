// Device and Stream: where memory is, and where and in which order GPU work runs.
#pragma once

#include <cstdint>

namespace pagoda {

enum class DeviceType : uint8_t { kCpu, kCuda };

struct Device {
  DeviceType type = DeviceType::kCpu;
  int32_t index = 0;

  friend constexpr bool operator==(Device, Device) = default;
};

// A CUDA stream: work that is launched into one stream runs in order. Host back ends ignore it.
struct Stream {
  void* handle = nullptr;  // a cudaStream_t; null = the default stream of the device

  friend constexpr bool operator==(Stream, Stream) = default;
};

[[nodiscard]] constexpr const char* name(DeviceType type) {
  return type == DeviceType::kCpu ? "cpu" : "cuda";
}

}  // namespace pagoda
