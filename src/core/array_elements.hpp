// The two ways from an ArrayView of a call to its elements; nothing else takes its pointer to read
// from it on the host.
#pragma once

#include <span>
#include <stdexcept>

#include "pagoda/array_view.hpp"

namespace pagoda::core {

// For kernels: the elements in the memory that their back end reads, which may not be the host's.
template <typename T>
[[nodiscard]] std::span<const T> elements(const ArrayView<T>& array) {
  return {array.data(), static_cast<size_t>(array.size())};
}

// For the engine: the elements of host memory. An array of a GPU is a defect of the caller, and
// throws instead of faulting.
template <typename T>
[[nodiscard]] std::span<const T> host_elements(const ArrayView<T>& array) {
  if (array.device().type != DeviceType::kCpu) {
    throw std::logic_error("host code must not read an array of a GPU");
  }
  return elements(array);
}

// Elements from the first one of a matrix to its last.
template <typename T>
[[nodiscard]] int64_t extent(const MatrixView<T>& matrix) {
  return matrix.rows == 0 ? 0 : (matrix.rows - 1) * matrix.row_stride + matrix.columns;
}

}  // namespace pagoda::core
