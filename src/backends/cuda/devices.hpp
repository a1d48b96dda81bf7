// The GPUs of this process: their names, and why the CUDA back end can't use one.
#pragma once

#include <cstdint>
#include <string>

#include "core/backend.hpp"
#include "kernels/common/archs.hpp"

namespace pagoda::cuda {

// The devices that the back end runs on, and why it can't run (empty = it can).
[[nodiscard]] std::string description();
[[nodiscard]] std::string unavailable_reason();
[[nodiscard]] std::string driver();  // "CUDA 13.0": the newest version that the driver supports

// Why append_kv and merge_states can't run on this device and nothing can be allocated there;
// empty = they can.
[[nodiscard]] std::string unsupported_reason(Device device);
// The same as an error of `field`.
[[nodiscard]] Status check_device(const char* field, Device device);

// Whether attention kernels of a family can run on this device and are in this build, and why not;
// the reason is empty where they can.
[[nodiscard]] bool can_run(const kernels::Archs& archs, Device device);
[[nodiscard]] std::string unsupported_reason(const kernels::Archs& archs, Device device);

// Why a kernel on that device can't read the memory; empty = it can.
[[nodiscard]] std::string misplaced(const void* data, Device device);

}  // namespace pagoda::cuda
