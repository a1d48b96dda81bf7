// Outputs: what the memory of a call's results holds, to compare with and to restore.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "pagoda/pagoda.hpp"

namespace pagoda::fuzz {

// The elements that a tensor reaches over, gaps included.
struct Snapshot {
  explicit Snapshot(const Tensor& t) : tensor(t) {
    if (t.data == nullptr || t.rank <= 0 || t.rank > kMaxRank) return;
    const auto rank = static_cast<size_t>(t.rank);
    if (std::any_of(t.shape.begin(), t.shape.begin() + rank, [](int64_t n) { return n <= 0; })) {
      return;
    }
    count = size_bytes(t.dtype) == 0 ? 0 : 1;
    for (size_t i = 0; i < rank && count != 0; ++i) {
      const int64_t reach = (t.shape[i] - 1) * t.strides[i];
      count += std::abs(reach);
      if (reach < 0) low += reach;
    }
    bytes.resize(static_cast<size_t>(count * size_bytes(t.dtype)));
    if (count != 0) std::memcpy(bytes.data(), first(), bytes.size());
  }
  [[nodiscard]] std::byte* first() const {
    return static_cast<std::byte*>(tensor.data) + low * size_bytes(tensor.dtype);
  }
  [[nodiscard]] bool is_unchanged() const {
    return count == 0 || std::memcmp(bytes.data(), first(), bytes.size()) == 0;
  }
  void restore() const {
    if (count != 0) std::memcpy(first(), bytes.data(), bytes.size());
  }
  Tensor tensor;
  int64_t count = 0, low = 0;
  std::vector<std::byte> bytes;
};

struct Outputs {
  explicit Outputs(const Attention& a)
      : all{Snapshot(a.out), Snapshot(a.lse), Snapshot(a.row_max)} {}
  [[nodiscard]] bool are_unchanged() const {
    for (const Snapshot& s : all) {
      if (!s.is_unchanged()) return false;
    }
    return true;
  }
  void restore() const {
    for (const Snapshot& s : all) s.restore();
  }
  Snapshot all[3];
};

}  // namespace pagoda::fuzz
