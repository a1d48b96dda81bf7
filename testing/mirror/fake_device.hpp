// A device without hardware, for tests: its memory can be touched by its own kernels and copies only,
// so that a host that reads an array of it ends the test. Its kernel is the reference.
#pragma once

#include <functional>

#include "core/backend.hpp"

namespace pagoda::mirror {

inline constexpr const char* kFakeDevice = "test:gpu";

// Registers the back end; may be called again.
[[nodiscard]] Status register_fake_device();

// Bytes that the device has (default: as much as there is); for tests of devices that are too small.
void set_fake_memory_limit(int64_t bytes);

// Called behind every attention, with the device's memory open: a test's own fault. Empty: none.
void set_fake_fault(std::function<void(const core::Problem&, int64_t run)> fault);

// Allocations that were not released.
[[nodiscard]] int64_t fake_allocations();

}  // namespace pagoda::mirror
