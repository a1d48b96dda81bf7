// How wide the accesses to the rows of a tensor may be. Host code.
#pragma once

#include <algorithm>
#include <cstdint>

#include "pagoda/dtype.hpp"

namespace pagoda::kernels {

// Rows of contiguous elements. Rows start at `data` plus any sum of the offsets that were added.
class RowAlignment {
 public:
  RowAlignment(const void* data, DType dtype)
      : size_(size_bytes(dtype)), address_bits_(reinterpret_cast<uintptr_t>(data)) {}
  // A dimension of `extent`: one of 1 moves nothing, whatever its stride.
  RowAlignment& add(int64_t extent, int64_t stride_bytes) {
    if (extent > 1) address_bits_ |= static_cast<uint64_t>(stride_bytes);
    return *this;
  }
  // May `elements`, a power of two, be moved in accesses of up to 16 bytes?
  [[nodiscard]] bool allows(int64_t elements) const {
    const auto width = static_cast<uint64_t>(std::min<int64_t>(elements * size_, 16));
    return address_bits_ % width == 0;
  }

 private:
  int64_t size_;
  uint64_t address_bits_;  // a bit that is set here may be set in the address of a row
};

}  // namespace pagoda::kernels
