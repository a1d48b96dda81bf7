// Block: owned memory of a MemorySpace. Staged: memory that the host and kernels access: one block
// for a host back end, a host block and a device block for a GPU.
#pragma once

#include <memory>
#include <span>

#include "core/memory_space.hpp"
#include "pagoda/array_view.hpp"

namespace pagoda::mirror {

struct Releaser {
  core::MemorySpace* space = nullptr;
  int64_t bytes = 0;
  void operator()(std::byte* memory) const { space->release(memory); }
};

struct StagingReleaser {
  core::MemorySpace* space = nullptr;
  void operator()(std::byte* memory) const { space->release_staging(memory); }
};

class Block {
 public:
  Block() = default;
  Block(core::MemorySpace& space, int64_t bytes)
      : memory_(space.allocate(bytes > 0 ? bytes : 1), Releaser{&space, bytes}) {}

  [[nodiscard]] std::byte* data() const { return memory_.get(); }
  [[nodiscard]] int64_t bytes() const { return memory_ ? memory_.get_deleter().bytes : 0; }
  [[nodiscard]] std::span<std::byte> span() const { return {data(), static_cast<size_t>(bytes())}; }

 private:
  std::unique_ptr<std::byte, Releaser> memory_;
};

class Staged {
 public:
  Staged() = default;
  explicit Staged(core::MemorySpace& space) : space_(&space) {}

  // Grows to at least `bytes`; growing discards the contents.
  void reserve(int64_t bytes);
  [[nodiscard]] int64_t bytes() const { return there_.bytes(); }

  [[nodiscard]] std::byte* host() const { return here_ ? here_.get() : there_.data(); }
  [[nodiscard]] std::byte* seen() const { return there_.data(); }  // what kernels access

  // Copies the first `bytes` from host() to seen().
  void send(int64_t bytes) const;
  // `values` where kernels access them: `values` itself for a host back end, otherwise a device
  // copy, valid until the next call.
  template <typename T>
  ArrayView<T> send(std::span<const T> values);

 private:
  core::MemorySpace* space_ = nullptr;
  Block there_;
  std::unique_ptr<std::byte, StagingReleaser> here_;  // empty for a host back end
};

template <typename T>
ArrayView<T> Staged::send(std::span<const T> values) {
  if (space_->is_host() || values.empty()) return values;
  const auto bytes = static_cast<int64_t>(values.size_bytes());
  if (there_.bytes() < bytes) there_ = Block(*space_, 2 * bytes);
  space_->copy_in(there_.data(), values.data(), bytes);
  return {reinterpret_cast<const T*>(there_.data()), std::ssize(values), space_->device()};
}

}  // namespace pagoda::mirror
