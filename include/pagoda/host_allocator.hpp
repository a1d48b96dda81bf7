// HostAllocator: where the back ends in host memory get their large buffers.
#pragma once

#include <cstddef>

#include "pagoda/status.hpp"

namespace pagoda {

// Both functions are safe to call from several threads and throw nothing; `allocate` returns null
// where it fails. `alignment` is a power of two.
struct HostAllocator {
  void* (*allocate)(void* context, size_t bytes, size_t alignment) = nullptr;
  void (*deallocate)(void* context, void* memory, size_t bytes, size_t alignment) = nullptr;
  void* context = nullptr;
};

// Sets the allocator of the kept workspaces of run(attention, options) and of the worker threads'
// scratch (Plan::worker_scratch_bytes), for the whole process and from now on; {} = operator new,
// the default. A buffer goes back to the allocator that it came from, at the latest when its thread
// exits. Plans, Status messages and lists always come from operator new, and oneTBB allocates its
// own memory. kInvalidArgument: one function without the other.
[[nodiscard]] Status set_host_allocator(const HostAllocator& allocator);

}  // namespace pagoda
