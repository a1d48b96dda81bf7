// ArrayView and MatrixView: the arrays of a call (lengths, offsets, page ids, scales) with the
// device that they are on. Host code can't iterate or index them: their memory may be a GPU's.
#pragma once

#include <concepts>
#include <cstdint>
#include <ranges>

#include "pagoda/device.hpp"

namespace pagoda {

// A non-owning view of `size()` elements. A host container of T (std::vector, std::array,
// std::span, an array) converts to it; an array of a GPU names its device:
//   a.sinks = sinks;                                                   // std::vector<float>
//   a.sinks = {device_pointer, num_q_heads, {DeviceType::kCuda, 0}};
template <typename T>
class ArrayView {
 public:
  constexpr ArrayView() = default;
  constexpr ArrayView(const T* data, int64_t size, Device device = {})
      : data_(data), size_(size), device_(device) {}

  // Containers that would die with the expression are rejected when the program is compiled.
  template <std::ranges::contiguous_range Range>
  // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload)
  constexpr ArrayView(Range&& range) requires(
      std::ranges::sized_range<Range>&& std::ranges::borrowed_range<Range>&&
          std::same_as<std::ranges::range_value_t<Range>, T>)
      : data_(std::ranges::data(range)), size_(std::ranges::ssize(range)) {}

  [[nodiscard]] constexpr const T* data() const { return data_; }
  [[nodiscard]] constexpr int64_t size() const { return size_; }
  [[nodiscard]] constexpr bool empty() const { return size_ == 0; }
  [[nodiscard]] constexpr Device device() const { return device_; }
  [[nodiscard]] constexpr ArrayView first(int64_t count) const { return {data_, count, device_}; }

 private:
  const T* data_ = nullptr;
  int64_t size_ = 0;
  Device device_{};
};

// A non-owning view of `rows` rows of `columns` elements.
template <typename T>
struct MatrixView {
  const T* data = nullptr;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t row_stride = 0;  // elements from one row to the next
  Device device{};

  // Rows without gaps.
  static constexpr MatrixView contiguous(const T* data, int64_t rows, int64_t columns,
                                         Device device = {}) {
    return {data, rows, columns, columns, device};
  }
};

}  // namespace pagoda
