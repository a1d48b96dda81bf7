// Tensor: a non-owning view of memory (pointer, element type, shape, strides, device).
// Strides count elements, not bytes; the last one must be 1 (of LSEs and scales it may be any), the
// others are free. `device` is where the memory is; the back end of the call must be able to read
// it (attention.hpp, Placement).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "pagoda/device.hpp"
#include "pagoda/dtype.hpp"

namespace pagoda {

inline constexpr int32_t kMaxRank = 5;

// `Void` is `void` for memory that Pagoda writes and `const void` for memory that it only reads.
template <typename Void>
struct BasicTensor {
  Void* data = nullptr;
  DType dtype = DType::kF32;
  int32_t rank = 0;                         // 0 = absent
  std::array<int64_t, kMaxRank> shape{};    // elements
  std::array<int64_t, kMaxRank> strides{};  // elements
  Device device{};

  // A row-major view. A shape longer than kMaxRank gives a tensor with that rank, which validation
  // rejects.
  static BasicTensor contiguous(Void* data, DType dtype, std::initializer_list<int64_t> shape,
                                Device device = {}) {
    BasicTensor t{.data = data, .dtype = dtype, .device = device};
    t.rank = static_cast<int32_t>(shape.size());
    int32_t i = 0;
    for (const int64_t extent : shape) {
      if (i == kMaxRank) break;
      t.shape[static_cast<size_t>(i++)] = extent;
    }
    int64_t stride = 1;
    for (int32_t d = (t.rank < kMaxRank ? t.rank : kMaxRank) - 1; d >= 0; --d) {
      t.strides[static_cast<size_t>(d)] = stride;
      // Unsigned: a nonsensical shape must not be undefined behaviour before validation sees it.
      stride = static_cast<int64_t>(static_cast<uint64_t>(stride) *
                                    static_cast<uint64_t>(t.shape[static_cast<size_t>(d)]));
    }
    return t;
  }

  [[nodiscard]] bool present() const { return rank != 0; }

  // The same memory with two dimensions exchanged. Precondition: a and b are below the rank.
  [[nodiscard]] BasicTensor transposed(int32_t a, int32_t b) const {
    BasicTensor t = *this;
    const auto i = static_cast<size_t>(a), j = static_cast<size_t>(b);
    t.shape[i] = shape[j];
    t.shape[j] = shape[i];
    t.strides[i] = strides[j];
    t.strides[j] = strides[i];
    return t;
  }

  // A writable tensor reads as a read-only one.
  operator BasicTensor<const void>() const  // NOLINT(google-explicit-constructor)
      requires(!std::is_const_v<Void>) {
    return {data, dtype, rank, shape, strides, device};
  }
};

using Tensor = BasicTensor<void>;
using ConstTensor = BasicTensor<const void>;

}  // namespace pagoda
