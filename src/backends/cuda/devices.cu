// Names of the GPUs, and why kernels can't run on one.
#include <algorithm>
#include <exception>
#include <span>

#include "arch/ptx/device.hpp"
#include "backends/cuda/compiled_code.hpp"
#include "backends/cuda/devices.hpp"

namespace pagoda::cuda {
namespace {

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

// "cuda:0 is NVIDIA H200 (sm_90)"
std::string describe(Device device) {
  return "cuda:" + std::to_string(device.index) + " is " +
         describe(arch::devices()[static_cast<size_t>(device.index)]);
}

// "this build has attention kernels for sm_90a"
std::string what_is_held() {
  const std::string held = held_code();
  return held.empty() ? "this build has no attention kernels"
                      : "this build has attention kernels for " + held;
}

std::string list(std::span<const arch::DeviceProperties> devices) {
  std::string text;
  for (const auto& device : devices) {
    text += (text.empty() ? "" : ", ") + describe(device);
    if (!has_attention_code(device.arch)) text += " for append_kv and merge_states only";
  }
  return text;
}

std::string missing_reason(Device device) {
  const size_t count = arch::devices().size();
  if (device.index >= 0 && static_cast<size_t>(device.index) < count) return {};
  return "there is no cuda:" + std::to_string(device.index) + "; this machine has " +
         std::to_string(count) + " devices";
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
    if (device.arch >= kLeastArch) return {};
  }
  std::string found;
  for (const auto& device : devices) found += (found.empty() ? "" : ", ") + describe(device);
  return "append_kv and merge_states need sm_" + std::to_string(kLeastArch) + " or later, and " +
         what_is_held() + "; this machine has " + found;
}

}  // namespace

std::string unavailable_reason() {
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

std::string unsupported_reason(Device device) {
  std::string reason = missing_reason(device);
  if (!reason.empty()) return reason;
  const int32_t arch = arch::devices()[static_cast<size_t>(device.index)].arch;
  if (arch >= kLeastArch) return {};
  return "needs sm_" + std::to_string(kLeastArch) + " or later, " + describe(device);
}

bool can_run(const kernels::Archs& archs, Device device) {
  return missing_reason(device).empty() &&
         has_code(archs, arch::devices()[static_cast<size_t>(device.index)].arch);
}

std::string unsupported_reason(const kernels::Archs& archs, Device device) {
  if (can_run(archs, device)) return {};
  std::string reason = missing_reason(device);
  if (!reason.empty()) return reason;
  const int32_t arch = arch::devices()[static_cast<size_t>(device.index)].arch;
  if (archs.run_on(arch)) {
    return "this build has no code for sm_" + std::to_string(arch) + (archs.has_ptx ? "" : "a") +
           ", " + describe(device) + ", " + what_is_held();
  }
  std::string needed;
  for (const int32_t each : archs.compiled) {
    if (archs.has_ptx && !needed.empty()) continue;
    needed += (needed.empty() ? "sm_" : " or sm_") + std::to_string(each);
  }
  if (archs.has_ptx) needed += " or later";
  const std::string missing = missing_code(archs);
  return "needs " + needed + ", " + describe(device) + ", " +
         (missing.empty() ? what_is_held() : "this build has no code for " + missing);
}

std::string misplaced(const void* data, Device device) {
  cudaPointerAttributes attributes = {};
  arch::check(cudaPointerGetAttributes(&attributes, data), "querying a pointer");
  switch (attributes.type) {
    case cudaMemoryTypeUnregistered: return "host memory";
    case cudaMemoryTypeHost:  // pinned: readable over the bus if it is mapped
      return attributes.devicePointer == nullptr ? "host memory that is not mapped" : "";
    case cudaMemoryTypeDevice:
      if (attributes.device == device.index) return {};
      return "on cuda:" + std::to_string(attributes.device);
    default: return {};  // managed
  }
}

Status check_device(const char* field, Device device) {
  const std::string reason = unsupported_reason(device);
  return reason.empty() ? Status{} : Status::unsupported(field, std::string(field) + ": " + reason);
}

}  // namespace pagoda::cuda
