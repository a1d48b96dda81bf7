// A fake device for tests: only its own kernels and copies can access its memory, so that a host
// access ends the test with a fault. Its kernel is the reference.
#pragma once

#include <functional>

#include "core/backend.hpp"

namespace pagoda::mirror {

inline constexpr const char* kFakeDevice = "test:gpu";

// Registers the back end; may be called again.
[[nodiscard]] Status register_fake_device();

// Limits the bytes of device memory (default: no limit), for tests of out-of-memory errors.
void set_fake_memory_limit(int64_t bytes);

// Called after every attention call with access to device memory: injects a fault. Empty = none.
void set_fake_fault(std::function<void(const core::Problem&, int64_t run)> fault);

// The number of allocations that were not released.
[[nodiscard]] int64_t fake_allocations();

}  // namespace pagoda::mirror
