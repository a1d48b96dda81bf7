// GuardedTensor: a tensor for kernel tests, with gaps between the elements of each dimension and
// guards before and after, filled with poison.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "pagoda/tensor.hpp"

namespace pagoda::material {

class GuardedTensor {
 public:
  static constexpr std::byte kPoison{0xff};  // NaN in every type

  // `gap`: additional elements in the stride of each dimension but the last. `guard`: elements
  // before and after; it also determines the alignment, as the allocation itself is 16-byte
  // aligned.
  GuardedTensor(DType dtype, std::initializer_list<int64_t> shape, int64_t gap, int64_t guard)
      : view_(Tensor::contiguous(nullptr, dtype, shape)), guard_bytes_(guard * size_bytes(dtype)) {
    int64_t stride = 1;
    for (int32_t d = view_.rank - 1; d >= 0; --d) {
      const auto i = static_cast<size_t>(d);
      view_.strides[i] = stride;
      stride = stride * view_.shape[i] + gap;
    }
    bytes_.assign(static_cast<size_t>(stride * size_bytes(dtype) + 2 * guard_bytes_), kPoison);
  }

  [[nodiscard]] Tensor view() {
    Tensor tensor = view_;
    tensor.data = bytes_.data() + guard_bytes_;
    return tensor;
  }
  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }  // guards and gaps included

 private:
  Tensor view_;
  int64_t guard_bytes_;
  std::vector<std::byte> bytes_;
};

}  // namespace pagoda::material
