// Enumerates the GPUs once. A machine without a driver or a GPU is no error here.
#include <vector>

#include "arch/ptx/device.hpp"

namespace pagoda::arch {
inline namespace ptx {

namespace {

struct Found {
  std::vector<DeviceProperties> devices;
  cudaError_t error = cudaSuccess;
};

int attribute(cudaDeviceAttr name, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, name, device), "reading a device attribute");
  return value;
}

Found find_devices() {
  Found found;
  int count = 0;
  found.error = cudaGetDeviceCount(&count);
  if (found.error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return found;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    check(cudaGetDeviceProperties(&properties, i), "reading the device properties");
    found.devices.push_back({.name = properties.name,
                             .arch = 10 * attribute(cudaDevAttrComputeCapabilityMajor, i) +
                                     attribute(cudaDevAttrComputeCapabilityMinor, i),
                             .num_sms = attribute(cudaDevAttrMultiProcessorCount, i),
                             .l2_bytes = attribute(cudaDevAttrL2CacheSize, i),
                             .memory_bytes = static_cast<int64_t>(properties.totalGlobalMem)});
  }
  return found;
}

const Found& found() {
  static const Found kFound = find_devices();
  return kFound;
}

}  // namespace

std::span<const DeviceProperties> devices() { return found().devices; }
cudaError_t devices_error() { return found().error; }

}  // namespace ptx
}  // namespace pagoda::arch
