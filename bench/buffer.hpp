// Buffer: anonymous memory that is reserved but not allocated until it is touched, in huge pages if
// the system grants them (streaming reads from 4 KiB pages are about 10 % slower).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace pagoda::bench {

struct Unmapper {
  int64_t bytes = 0;
  void operator()(std::byte* memory) const;
};

class Buffer {
 public:
  Buffer() = default;
  // Zero-filled, page-aligned. data() is nullptr if the system can't reserve the memory.
  explicit Buffer(int64_t bytes);

  [[nodiscard]] std::byte* data() const { return memory_.get(); }
  [[nodiscard]] int64_t bytes() const { return memory_ ? memory_.get_deleter().bytes : 0; }
  [[nodiscard]] std::span<std::byte> span() const { return {data(), static_cast<size_t>(bytes())}; }

 private:
  std::unique_ptr<std::byte, Unmapper> memory_;
};

}  // namespace pagoda::bench
