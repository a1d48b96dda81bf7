// Memory of test tensors: blocks of exactly the bytes asked for, and outputs between guard bands.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "core/element.hpp"
#include "pagoda/tensor.hpp"

namespace pagoda::conformance {

// Exactly `bytes` bytes, so that AddressSanitizer sees an access one element too far. From 1 GiB on
// a sparse mapping that starts as zeros and takes memory only where it is touched.
class Memory {
 public:
  Memory() = default;
  explicit Memory(int64_t bytes);
  ~Memory();
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] int64_t bytes() const { return bytes_; }
  [[nodiscard]] bool is_sparse() const { return bytes_ >= int64_t{1} << 30; }
  [[nodiscard]] std::span<std::byte> span() const { return {data_, static_cast<size_t>(bytes_)}; }
  // NaN in every element of a dense block; a sparse block is unchanged.
  void fill_with_nan(DType dtype) const;
  // Stores one vector, element i of it value(i), and records the range as touched.
  template <typename Value>
  void store(DType dtype, int64_t offset, int64_t count, const Value& value) {
    for (int64_t i = 0; i < count; ++i) core::store_element(data_, dtype, offset + i, value(i));
    if (!is_sparse()) return;
    const auto size = static_cast<size_t>(size_bytes(dtype));
    touched_.push_back(
        span().subspan(static_cast<size_t>(offset) * size, static_cast<size_t>(count) * size));
  }
  [[nodiscard]] const std::vector<std::span<std::byte>>& touched() const { return touched_; }
  [[nodiscard]] uint64_t checksum() const;  // 0 for a sparse block

 private:
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  std::vector<std::span<std::byte>> touched_;  // of a sparse block
};

// A tensor that the call under test writes, poisoned and surrounded by guards.
class OutputTensor {
 public:
  OutputTensor() = default;
  // Gaps as in Case: innermost vector, middle extents, outermost extent.
  OutputTensor(DType dtype, std::initializer_list<int64_t> shape, int64_t inner_gap,
               int64_t middle_gap);

  [[nodiscard]] const Tensor& tensor() const { return tensor_; }
  [[nodiscard]] std::span<std::byte> bytes() { return bytes_; }  // guards and gaps included
  void poison();
  [[nodiscard]] float at(std::initializer_list<int64_t> index) const;
  // Sets one element, which may be in a guard or a gap: for tests of the tests.
  void set(std::initializer_list<int64_t> index, float value);
  // Names the first byte outside the tensor's elements that was written; empty = none.
  [[nodiscard]] std::string stray_write() const;

 private:
  [[nodiscard]] int64_t offset(std::initializer_list<int64_t> index) const;

  std::vector<std::byte> bytes_;
  std::vector<bool> is_element_;  // per element of bytes_
  Tensor tensor_{};
};

}  // namespace pagoda::conformance
