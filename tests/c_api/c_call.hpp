// CCall: a call of the C++ API as the structs of pagoda.h. Tests run both and make one field at a
// time invalid.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "pagoda/pagoda.h"
#include "pagoda/pagoda.hpp"

namespace pagoda::test {

// The views of a call, with their shapes and strides.
class CViews {
 public:
  CViews() = default;
  CViews(const CViews&) = delete;
  CViews& operator=(const CViews&) = delete;

  // Null if the tensor is absent.
  const pagoda_tensor* tensor(const ConstTensor& from);

  // Null if the array is empty.
  template <typename T>
  const pagoda_tensor* array(ArrayView<T> from, pagoda_dtype dtype) {
    if (from.empty()) return nullptr;
    return add(from.data(), dtype, {from.size()}, {1}, from.device());
  }

  const pagoda_tensor* add(const void* data, pagoda_dtype dtype, std::vector<int64_t> shape,
                           std::vector<int64_t> strides, Device device = {});

 private:
  struct View {
    pagoda_tensor tensor;
    std::vector<int64_t> shape, strides;
  };
  std::deque<View> views_;
};

// What a test may change in a view that CViews has made.
inline pagoda_tensor& edit(const pagoda_tensor* tensor) {
  return const_cast<pagoda_tensor&>(*tensor);
}
inline int64_t* edit_shape(const pagoda_tensor* tensor) {
  return const_cast<int64_t*>(tensor->shape);
}
inline int64_t* edit_strides(const pagoda_tensor* tensor) {
  return const_cast<int64_t*>(tensor->strides);
}

// Points to the arrays of `attention` and not to itself; keeps no backend, kernel or executor.
struct CCall {
  explicit CCall(const Attention& attention);

  CViews views;
  pagoda_kv_cache kv{.struct_size = sizeof kv};
  pagoda_kv_scales kv_scales{.struct_size = sizeof kv_scales};
  std::vector<pagoda_mask_node> nodes;
  pagoda_mask mask{.struct_size = sizeof mask};
  pagoda_score_mod score_mod{.struct_size = sizeof score_mod};
  pagoda_attention attention{.struct_size = sizeof attention};
};

}  // namespace pagoda::test
