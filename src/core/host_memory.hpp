// HostMemory: an aligned host buffer from the process's allocator (pagoda/host_allocator.hpp). For
// what threads keep between calls; containers use operator new.
#pragma once

#include <cstddef>
#include <utility>

#include "pagoda/host_allocator.hpp"

namespace pagoda::core {

class HostMemory {
 public:
  static constexpr size_t kAlignment = 64;

  HostMemory() = default;
  // Uninitialised bytes. Throws std::bad_alloc.
  explicit HostMemory(size_t bytes);
  HostMemory(HostMemory&& other) noexcept { swap(other); }
  HostMemory& operator=(HostMemory&& other) noexcept {
    HostMemory taken(std::move(other));
    swap(taken);
    return *this;
  }
  ~HostMemory();

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] size_t size() const { return size_; }

 private:
  void swap(HostMemory& other) noexcept {
    std::swap(allocator_, other.allocator_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  HostAllocator allocator_{};  // the one that the buffer came from
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace pagoda::core
