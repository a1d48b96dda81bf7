// Which of this process's GPUs the CUDA back end can use, in words.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/backend.hpp"

namespace pagoda::cuda {

// Of the back end as a whole: what it runs on, and what keeps it from running (empty: nothing).
[[nodiscard]] std::string description();
[[nodiscard]] std::string unavailable_reason();
[[nodiscard]] std::string driver();  // "CUDA 13.0": the newest that it runs

// Why append_kv and merge_states can't run on this device, and nothing can be allocated there; empty: they can.
[[nodiscard]] std::string unsupported_reason(Device device);
// The same as a complaint about `field`.
[[nodiscard]] Status check_device(const char* field, Device device);

// Why attention kernels for these architectures (90: sm_90a, which runs on nothing else) can't run on this
// device, or are not in this build; empty: they can.
[[nodiscard]] std::string unsupported_reason(std::span<const int32_t> archs, Device device);

// Why a kernel on that device can't read the memory; empty: it can.
[[nodiscard]] std::string misplaced(const void* data, Device device);

}  // namespace pagoda::cuda
