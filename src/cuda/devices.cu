// The GPUs as words.
#include <exception>
#include <span>

#include "arch/ptx/device.hpp"
#include "cuda/devices.hpp"

namespace pagoda::cuda {
namespace {

constexpr int32_t kArch = 90;  // kernels are compiled for sm_90a, which runs on nothing else

std::string version(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

int driver_version() {
  int driver = 0;
  return cudaDriverGetVersion(&driver) == cudaSuccess ? driver : 0;
}

std::string describe(const arch::DeviceProperties& device) {
  return device.name + " (sm_" + std::to_string(device.arch) + ")";
}

std::string list(std::span<const arch::DeviceProperties> devices) {
  std::string text;
  for (const auto& device : devices) text += (text.empty() ? "" : ", ") + describe(device);
  return text;
}

std::string find_obstacle() {
  const int driver = driver_version();
  if (driver == 0) return "no NVIDIA driver";
  const std::span<const arch::DeviceProperties> devices = arch::devices();
  if (arch::devices_error() == cudaErrorInsufficientDriver) {
    return "the NVIDIA driver is for CUDA " + version(driver) + "; needs " +
           version(CUDART_VERSION);
  }
  if (devices.empty()) {
    return std::string("no NVIDIA GPU: ") + cudaGetErrorString(arch::devices_error());
  }
  for (const auto& device : devices) {
    if (device.arch == kArch) return {};
  }
  return "the kernels are for sm_" + std::to_string(kArch) + "; this machine has " + list(devices);
}

}  // namespace

std::string why_not() {
  static const std::string kObstacle = [] {
    try {
      return find_obstacle();
    } catch (const std::exception& e) {  // backends() must not throw
      return std::string(e.what());
    }
  }();
  return kObstacle;
}

std::string driver() { return "CUDA " + version(driver_version()); }

std::string description() { return list(arch::devices()) + ", " + driver(); }

std::string refuse_device(Device device) {
  const std::span<const arch::DeviceProperties> devices = arch::devices();
  if (device.index < 0 || static_cast<size_t>(device.index) >= devices.size()) {
    return "there is no cuda:" + std::to_string(device.index) + "; this machine has " +
           std::to_string(devices.size()) + " devices";
  }
  const arch::DeviceProperties& found = devices[static_cast<size_t>(device.index)];
  if (found.arch == kArch) return {};
  return "is for sm_" + std::to_string(kArch) + "; cuda:" + std::to_string(device.index) + " is " +
         describe(found);
}

std::string misplaced(const void* data, Device device) {
  cudaPointerAttributes attributes = {};
  arch::check(cudaPointerGetAttributes(&attributes, data), "asking where memory lies");
  switch (attributes.type) {
    case cudaMemoryTypeUnregistered: return "host memory";
    case cudaMemoryTypeHost:  // pinned: read over the bus, where it is mapped
      return attributes.devicePointer == nullptr ? "host memory that is not mapped" : "";
    case cudaMemoryTypeDevice:
      if (attributes.device == device.index) return {};
      return "on cuda:" + std::to_string(attributes.device);
    default: return {};  // managed
  }
}

Status check_device(const char* field, Device device) {
  const std::string reason = refuse_device(device);
  return reason.empty() ? Status{} : Status::unsupported(field, std::string(field) + ": " + reason);
}

}  // namespace pagoda::cuda
