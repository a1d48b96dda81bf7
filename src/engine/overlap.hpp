// Whether two arrays share bytes, decided from addresses, extents and strides alone.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "pagoda/array_view.hpp"
#include "pagoda/tensor.hpp"

namespace pagoda::engine {

// The bytes of an array's elements: those at first + sum of i[d] * dims[d].stride with 0 <= i[d] <
// dims[d].extent, where dims[0] is the bytes of one element. Every one is inside [begin, end).
struct ByteView {
  struct Dim {
    int64_t extent, stride;  // stride in bytes
  };
  uintptr_t first = 0, begin = 0, end = 0;  // all 0 where the array is absent or empty
  int32_t rank = 0;
  std::array<Dim, kMaxRank + 1> dims{};

  [[nodiscard]] bool is_gapless() const;
  // Adds a dimension. Strides must be such that every address is in the address space.
  void add(int64_t extent, int64_t stride_bytes);
};

// `tensor` has passed check_tensor(), or is absent.
[[nodiscard]] ByteView bytes_of(const ConstTensor& tensor);
// `rows` rows of `row_bytes` bytes, `row_stride` bytes from each to the next.
[[nodiscard]] ByteView bytes_of_rows(const void* data, int64_t rows, int64_t row_bytes,
                                     int64_t row_stride);
template <typename T>
[[nodiscard]] ByteView bytes_of(const ArrayView<T>& array) {
  const auto bytes = array.size() * static_cast<int64_t>(sizeof(T));
  return bytes_of_rows(array.data(), 1, bytes, bytes);
}

// False where their address ranges are apart.
[[nodiscard]] inline bool may_share_bytes(const ByteView& a, const ByteView& b) {
  return a.begin < b.end && b.begin < a.end;
}

// Exact, or nullopt where the search would take long: strides that are not multiples of each other
// in two views that interleave. Views of one buffer with the strides of that buffer are exact.
[[nodiscard]] std::optional<bool> share_bytes(const ByteView& a, const ByteView& b);

}  // namespace pagoda::engine
