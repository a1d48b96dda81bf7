// Calls of FlashAttention and FlashInfer as their callers describe them, in small shapes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "pagoda/pagoda.hpp"

namespace pagoda::test {

// The memory of a call.
class CallMemory {
 public:
  // Normal numbers. `nan_rows`: of dimension 1, from row 0 on, which are NaN.
  ConstTensor values(DType dtype, std::initializer_list<int64_t> shape, int64_t nan_rows = 0);
  // Positive fp32 numbers around 1.
  ConstTensor scales(std::initializer_list<int64_t> shape);
  Tensor output(DType dtype, std::initializer_list<int64_t> shape);  // poisoned
  ArrayView<int32_t> ints(std::vector<int32_t> values);
  ArrayView<float> floats(std::vector<float> values);
  ArrayView<uint32_t> words(std::vector<uint32_t> values);
  ArrayView<int64_t> longs(std::vector<int64_t> values);

 private:
  template <typename T>
  ArrayView<T> keep(std::deque<std::vector<T>>& all, std::vector<T> values);

  std::mt19937 random_{7};
  std::deque<std::vector<std::byte>> tensors_;
  std::deque<std::vector<int32_t>> ints_;
  std::deque<std::vector<int64_t>> longs_;
  std::deque<std::vector<float>> floats_;
  std::deque<std::vector<uint32_t>> words_;
};

struct PeerCall {
  const char* name;
  Attention (*make)(CallMemory& memory);
  int32_t num_kv_splits = 0;
  bool has_fp8_queries = false;  // by matrix cores on sm_100 alone
};

[[nodiscard]] std::span<const PeerCall> flash_attention_calls();
[[nodiscard]] std::span<const PeerCall> flashinfer_calls();

}  // namespace pagoda::test
