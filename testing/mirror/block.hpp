// Block: owned memory of a MemorySpace. Staged: memory that the host fills or reads and kernels see,
// which is one memory on the host and two on a device.
#pragma once

#include <span>
#include <utility>

#include "core/memory_space.hpp"

namespace pagoda::mirror {

class Block {
 public:
  Block() = default;
  Block(core::MemorySpace& space, int64_t bytes)
      : space_(&space), data_(space.allocate(bytes > 0 ? bytes : 1)), bytes_(bytes) {}
  ~Block() {
    if (data_ != nullptr) space_->release(data_);
  }
  Block(Block&& other) noexcept { *this = std::move(other); }
  Block& operator=(Block&& other) noexcept {
    std::swap(space_, other.space_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] int64_t bytes() const { return bytes_; }
  [[nodiscard]] std::span<std::byte> span() const { return {data_, static_cast<size_t>(bytes_)}; }

 private:
  core::MemorySpace* space_ = nullptr;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

class Staged {
 public:
  Staged() = default;
  explicit Staged(core::MemorySpace& space) : space_(&space) {}

  // Makes room for `bytes`; what was in it is lost where it grows.
  void reserve(int64_t bytes);
  [[nodiscard]] int64_t bytes() const { return there_.bytes(); }

  [[nodiscard]] std::byte* host() const { return here_.bytes() > 0 ? here_.data() : there_.data(); }
  [[nodiscard]] std::byte* seen() const { return there_.data(); }  // by kernels

  // The first bytes, to where kernels see them.
  void send(int64_t bytes) const;
  // `values` as kernels see them: on the host themselves, otherwise a copy that lasts until the next.
  template <typename T>
  std::span<const T> send(std::span<const T> values);

 private:
  core::MemorySpace* space_ = nullptr;
  Block there_;
  Block here_;  // empty where the space is the host's
};

template <typename T>
std::span<const T> Staged::send(std::span<const T> values) {
  if (space_->is_host() || values.empty()) return values;
  const auto bytes = static_cast<int64_t>(values.size_bytes());
  if (there_.bytes() < bytes) there_ = Block(*space_, 2 * bytes);
  space_->copy_in(there_.data(), values.data(), bytes);
  return {reinterpret_cast<const T*>(there_.data()), values.size()};
}

}  // namespace pagoda::mirror
