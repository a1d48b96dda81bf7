// How wide the accesses to the rows of a tensor may be. Host code.
#pragma once

#include <algorithm>
#include <cstdint>

#include "pagoda/dtype.hpp"

namespace pagoda::kernels {

// Alignment of the rows of a tensor: they start at `data` plus multiples of the strides added.
class RowAlignment {
 public:
  RowAlignment(const void* data, DType dtype)
      : size_(size_bytes(dtype)), address_bits_(reinterpret_cast<uintptr_t>(data)) {}
  // Adds a dimension of the tensor. The stride of one of extent 1 is never used.
  RowAlignment& add(int64_t extent, int64_t stride_bytes) {
    if (extent > 1) address_bits_ |= static_cast<uint64_t>(stride_bytes);
    return *this;
  }
  // Whether `elements` neighbours, a power of two, may be accessed at once, 16 bytes at most an
  // access.
  [[nodiscard]] bool allows(int64_t elements) const {
    const auto width = static_cast<uint64_t>(std::min<int64_t>(elements * size_, 16));
    return address_bits_ % width == 0;
  }

 private:
  int64_t size_;
  uint64_t address_bits_;  // bits that may be set in the address of a row
};

}  // namespace pagoda::kernels
