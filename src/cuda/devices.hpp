// Which of this process's GPUs the CUDA back end can use, in words.
#pragma once

#include <string>

#include "core/backend.hpp"

namespace pagoda::cuda {

// Of the back end as a whole: what it runs on, and what keeps it from running (empty: nothing).
[[nodiscard]] std::string description();
[[nodiscard]] std::string why_not();
[[nodiscard]] std::string driver();  // "CUDA 13.0": the newest that it runs

// Why this one can't be used; empty: it can.
[[nodiscard]] std::string refuse_device(Device device);
// The same as a complaint about `field`.
[[nodiscard]] Status check_device(const char* field, Device device);

// Why a kernel on that device can't read the memory; empty: it can.
[[nodiscard]] std::string misplaced(const void* data, Device device);

}  // namespace pagoda::cuda
