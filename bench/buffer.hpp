// Buffer: anonymous memory that costs nothing until it is touched, in huge pages where the system
// grants them (4 KiB pages cost streaming reads about a tenth).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace pagoda::bench {

class Buffer {
 public:
  Buffer() = default;
  // data() is nullptr where the system has no such memory. Zero-filled, aligned to a page.
  explicit Buffer(int64_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] int64_t bytes() const { return bytes_; }
  [[nodiscard]] std::span<std::byte> span() const { return {data_, static_cast<size_t>(bytes_)}; }

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace pagoda::bench
