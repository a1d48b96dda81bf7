// Names of the GPUs, and why kernels can't run on one. Code for a gfx target runs on that target
// alone.
#include "backends/hip/devices.hpp"

#include <algorithm>
#include <exception>

#include "arch/hip/device.hpp"

namespace pagoda::hip {
namespace {

std::string describe(const arch::DeviceProperties& device) {
  return device.name + " (" + device.target + ")";
}

const arch::DeviceProperties& properties(Device device) {
  return arch::devices()[static_cast<size_t>(device.index)];
}

std::string what_is_held() {
  std::string text;
  for (const int32_t arch : {PAGODA_HELD_GFX}) {
    text += (text.empty() ? "this build holds gfx" : ", gfx") + std::to_string(arch);
  }
  return text;
}

// No semicolons: `pagoda check` splits the reasons of a selection at them (cli/skip_reasons.cpp).
std::string no_code_for(const arch::DeviceProperties& device) {
  return device.name + " is " + device.target + ", " + what_is_held();
}

std::string find_obstacle() {
  const auto devices = arch::devices();
  if (devices.empty()) return arch::devices_obstacle();
  std::string others;
  for (const auto& device : devices) {
    if (is_held(device.arch)) return {};
    if (others.empty()) others = no_code_for(device);
  }
  return others + " (CMake: PAGODA_HIP_ARCHITECTURES)";
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

// HIP 6.2.41133 is 60241133.
std::string driver() {
  int version = 0;
  arch::check(arch::runtime().RuntimeGetVersion(&version), "reading the runtime's version");
  return "HIP " + std::to_string(version / 10'000'000) + "." +
         std::to_string(version / 100'000 % 100);
}

std::string description() {
  std::string text;
  for (const auto& device : arch::devices()) {
    text += (text.empty() ? "" : ", ") + describe(device);
    if (!is_held(device.arch)) text += " without code";
  }
  return text + ", " + driver();
}

std::string unsupported_reason(Device device) {
  const size_t count = arch::devices().size();
  if (device.index < 0 || static_cast<size_t>(device.index) >= count) {
    return "there is no hip:" + std::to_string(device.index) + ", this machine has " +
           std::to_string(count) + " devices";
  }
  const arch::DeviceProperties& found = properties(device);
  return is_held(found.arch) ? "" : no_code_for(found);
}

bool can_run(const kernels::Archs& archs, Device device) {
  return unsupported_reason(device).empty() &&
         archs.run_on(properties(device).arch, kernels::Vendor::kAmd);
}

std::string unsupported_reason(const kernels::Archs& archs, Device device) {
  if (can_run(archs, device)) return {};
  std::string reason = unsupported_reason(device);
  if (!reason.empty()) return reason;
  const arch::DeviceProperties& found = properties(device);
  std::string needed;
  for (const int32_t each : archs.compiled) {
    needed += (needed.empty() ? "gfx" : " or gfx") + std::to_string(each);
  }
  return "needs " + needed + ", hip:" + std::to_string(device.index) + " is " + describe(found);
}

std::string misplaced(const void* data, Device device) {
  const arch::HipRuntime& hip = arch::runtime();
  arch::HipPointerAttributes attributes{};
  const arch::HipError error = hip.PointerGetAttributes(&attributes, data);
  if (error == arch::HipError::kInvalidValue) {  // before ROCm 6.2: memory that HIP does not know
    static_cast<void>(hip.GetLastError());
    return "host memory";
  }
  arch::check(error, "querying a pointer");
  switch (attributes.type) {
    case arch::HipMemoryType::kUnregistered: return "host memory";
    case arch::HipMemoryType::kHost:  // pinned: readable over the bus if it is mapped
      return attributes.device_pointer == nullptr ? "host memory that is not mapped" : "";
    case arch::HipMemoryType::kDevice:
      if (attributes.device == device.index) return {};
      return "on hip:" + std::to_string(attributes.device);
    default: return {};  // managed
  }
}

Status check_device(const char* field, Device device) {
  const std::string reason = unsupported_reason(device);
  return reason.empty() ? Status{} : Status::unsupported(field, std::string(field) + ": " + reason);
}

}  // namespace pagoda::hip
