// Device and Stream: where memory is, and where and in which order GPU work runs.
#pragma once

#include <cstdint>

namespace pagoda {

// kHip: an AMD GPU, numbered as in HIP. PyTorch calls it "cuda" too; DLPack: kDLROCM.
enum class DeviceType : uint8_t { kCpu, kCuda, kHip };

struct Device {
  DeviceType type = DeviceType::kCpu;
  int32_t index = 0;

  friend constexpr bool operator==(Device, Device) = default;
};

// A CUDA or HIP stream: work that is launched into one stream runs in order. Host back ends ignore
// it.
struct Stream {
  void* handle = nullptr;  // a cudaStream_t or hipStream_t; null = the device's default stream

  friend constexpr bool operator==(Stream, Stream) = default;
};

[[nodiscard]] constexpr const char* name(DeviceType type) {
  return type == DeviceType::kCpu ? "cpu" : type == DeviceType::kCuda ? "cuda" : "hip";
}

}  // namespace pagoda
