// The process's allocator, and the buffers from it.
#include "core/host_memory.hpp"

#include <mutex>
#include <new>

namespace pagoda {
namespace {

struct Current {
  std::mutex mutex;
  HostAllocator allocator{.allocate = [](void*, size_t bytes, size_t alignment) -> void* {
                            return ::operator new (bytes, std::align_val_t{alignment},
                                                   std::nothrow);
                          },
                          .deallocate =
                              [](void*, void* memory, size_t, size_t alignment) {
                                ::operator delete (memory, std::align_val_t{alignment});
                              }};
};

// Never destroyed: threads free their buffers when they exit.
Current& current() {
  static auto* const kCurrent = new Current;
  return *kCurrent;
}

}  // namespace

Status set_host_allocator(const HostAllocator& allocator) {
  if ((allocator.allocate == nullptr) != (allocator.deallocate == nullptr)) {
    const bool has_allocate = allocator.allocate != nullptr;
    return Status::invalid(has_allocate ? "allocator.deallocate" : "allocator.allocate", "null",
                           "both functions must be given, or neither");
  }
  const std::lock_guard lock(current().mutex);
  current().allocator = allocator.allocate == nullptr ? Current{}.allocator : allocator;
  return {};
}

namespace core {

HostMemory::HostMemory(size_t bytes) {
  HostAllocator allocator;
  {
    const std::lock_guard lock(current().mutex);
    allocator = current().allocator;
  }
  void* memory = allocator.allocate(allocator.context, bytes, kAlignment);
  if (memory == nullptr) throw std::bad_alloc();
  allocator_ = allocator;
  data_ = static_cast<std::byte*>(memory);
  size_ = bytes;
}

HostMemory::~HostMemory() {
  if (data_ != nullptr) allocator_.deallocate(allocator_.context, data_, size_, kAlignment);
}

}  // namespace core
}  // namespace pagoda
