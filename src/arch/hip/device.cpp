// Enumerates the GPUs once. A machine without a runtime or a GPU is no error here.
#include "arch/hip/device.hpp"

#include <charconv>
#include <string_view>
#include <vector>

namespace pagoda::arch {
inline namespace hip {
namespace {

struct Found {
  std::vector<DeviceProperties> devices;
  std::string obstacle;
};

// "gfx942" of "gfx942:sramecc+:xnack-"
std::string target_of(std::string_view name) { return std::string(name.substr(0, name.find(':'))); }

int32_t arch_of(std::string_view target) {
  constexpr std::string_view kPrefix = "gfx";
  if (!target.starts_with(kPrefix)) return 0;
  target.remove_prefix(kPrefix.size());
  int32_t number = 0;
  const auto [end, error] = std::from_chars(target.data(), target.data() + target.size(), number);
  return error == std::errc() && end == target.data() + target.size() ? number : 0;
}

Found find_devices() {
  Found found;
  const HipRuntime* hip = find_runtime();
  if (hip == nullptr) {
    found.obstacle = runtime_obstacle();
    return found;
  }
  int count = 0;
  const HipError error = hip->GetDeviceCount(&count);
  if (error != HipError::kSuccess) {
    static_cast<void>(hip->GetLastError());
    found.obstacle =
        std::string("no AMD GPU: ") + hip->GetErrorName(error) + ", " + hip->GetErrorString(error);
    return found;
  }
  if (count == 0) found.obstacle = "no AMD GPU";
  for (int i = 0; i < count; ++i) {
    HipDeviceProperties properties{};
    check(hip->GetDeviceProperties(&properties, i), "reading the device properties");
    const std::string target = target_of(properties.gcn_arch_name);
    found.devices.push_back({.name = properties.name,
                             .target = target,
                             .arch = arch_of(target),
                             .num_cus = properties.multiprocessor_count,
                             .l2_bytes = properties.l2_cache_bytes,
                             .memory_bytes = static_cast<int64_t>(properties.total_global_memory)});
  }
  return found;
}

const Found& found() {
  static const Found kFound = find_devices();
  return kFound;
}

}  // namespace

std::span<const DeviceProperties> devices() { return found().devices; }
const std::string& devices_obstacle() { return found().obstacle; }

}  // namespace hip
}  // namespace pagoda::arch
