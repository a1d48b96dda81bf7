// Memory for fuzzed arguments: of exactly the size that the argument describes, so that
// AddressSanitizer detects an access to the first byte past it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <fuzzer/FuzzedDataProvider.h>
#include <initializer_list>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "pagoda/pagoda.hpp"

namespace pagoda::fuzz {

// Numbers at which arithmetic overflows, and small ones.
[[nodiscard]] int64_t nasty_number(FuzzedDataProvider& data);

class Memory {
 public:
  explicit Memory(uint32_t seed) : random_(seed) {}

  // A view with random gaps between rows; nothing is allocated yet.
  [[nodiscard]] static ConstTensor view(FuzzedDataProvider& data, DType dtype,
                                        std::initializer_list<int64_t> extents);

  // Allocates what `tensor` describes, filled with 0xff: NaN in every dtype. A description of more
  // than a MiB gets an address that faults when touched, and clears `is_backed`.
  void back(ConstTensor& tensor);
  void back(Tensor& tensor);

  // A copy with an end of its own; lives as long as this object.
  template <typename T>
  std::span<const T> keep(const std::vector<T>& values) {
    auto bytes = std::make_unique<std::byte[]>(values.size() * sizeof(T));
    T* copy = reinterpret_cast<T*>(bytes.get());
    std::copy(values.begin(), values.end(), copy);
    blocks_.push_back(std::move(bytes));
    return {copy, values.size()};
  }

  // A number that attention may meet in q, k and v.
  [[nodiscard]] float value() {
    return static_cast<float>(random_() % 4096) * (1.0F / 1024.0F) - 2.0F;
  }

  bool is_backed = true;

 private:
  void* allocate(const ConstTensor& tensor);

  std::minstd_rand random_;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

}  // namespace pagoda::fuzz
