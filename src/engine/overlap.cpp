// Two arrays share a byte where the difference of their first addresses is a sum of differences of
// their indices, times strides: a search over one dimension after another, largest stride first.
#include "engine/overlap.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/int_math.hpp"

namespace pagoda::engine {
namespace {

// Enough for views with common strides, whose search has two or three branches a dimension.
constexpr int32_t kMostSteps = 512;
constexpr int64_t kMostBytes = int64_t{1} << 61;  // sums of two arrays' offsets fit in 63 bits

// All integers of [low, high], times stride > 0.
struct Term {
  int64_t stride, low, high;
};

// Whether one value of each term gives the sum `target`.
class Search {
 public:
  // The indices of `view`, times `sign`.
  void add(const ByteView& view, int64_t sign) {
    for (int32_t d = 0; d < view.rank; ++d) {
      const auto [extent, stride] = view.dims[static_cast<size_t>(d)];
      const bool is_forward = (stride > 0) == (sign > 0);
      add({std::abs(stride), is_forward ? 0 : 1 - extent, is_forward ? extent - 1 : 0});
    }
  }

  std::optional<bool> find(int64_t target) {
    std::sort(terms_.begin(), terms_.begin() + count_,
              [](const Term& a, const Term& b) { return a.stride > b.stride; });
    for (size_t i = count_; i-- > 0;) {
      low_[i] = low_[i + 1] + terms_[i].low * terms_[i].stride;
      high_[i] = high_[i + 1] + terms_[i].high * terms_[i].stride;
    }
    const bool is_found = find(0, target);
    if (steps_ > kMostSteps) return std::nullopt;
    return is_found;
  }

 private:
  void add(const Term& term) {
    for (size_t i = 0; i < count_; ++i) {
      if (terms_[i].stride != term.stride) continue;
      terms_[i].low += term.low;
      terms_[i].high += term.high;
      return;
    }
    terms_[count_++] = term;
  }

  // By the terms from `i` on.
  bool find(size_t i, int64_t target) {
    if (target < low_[i] || target > high_[i]) return false;
    if (terms_[i].stride == 1) return true;  // the last one: every sum in between
    if (++steps_ > kMostSteps) return false;
    const auto [stride, low, high] = terms_[i];
    const int64_t first = std::max(low, -core::floor_div(high_[i + 1] - target, stride));
    const int64_t last = std::min(high, core::floor_div(target - low_[i + 1], stride));
    for (int64_t n = first; n <= last && steps_ <= kMostSteps; ++n) {
      if (find(i + 1, target - n * stride)) return true;
    }
    return false;
  }

  static constexpr size_t kMostTerms = 2 * (kMaxRank + 1);
  std::array<Term, kMostTerms> terms_{};
  std::array<int64_t, kMostTerms + 1> low_{}, high_{};  // least and largest sum of terms i ...
  size_t count_ = 0;
  int32_t steps_ = 0;
};

}  // namespace

void ByteView::add(int64_t extent, int64_t stride_bytes) {
  const int64_t step = (extent - 1) * stride_bytes;
  if (step == 0 && rank > 0) return;  // no other address
  dims[static_cast<size_t>(rank++)] = {extent, stride_bytes};
  (step < 0 ? begin : end) += static_cast<uintptr_t>(step);
}

bool ByteView::is_gapless() const {
  uintptr_t bytes = 1;
  for (int32_t d = 0; d < rank; ++d) {
    bytes *= static_cast<uintptr_t>(dims[static_cast<size_t>(d)].extent);
  }
  return bytes == end - begin;
}

ByteView bytes_of_rows(const void* data, int64_t rows, int64_t row_bytes, int64_t row_stride) {
  ByteView view;
  if (data == nullptr || rows <= 0 || row_bytes <= 0) return view;
  view.first = view.begin = reinterpret_cast<uintptr_t>(data);
  view.end = view.first + 1;
  view.add(row_bytes, 1);
  view.add(rows, row_stride);
  return view;
}

ByteView bytes_of(const ConstTensor& tensor) {
  const auto rank = static_cast<size_t>(tensor.rank);
  const auto end = tensor.shape.begin() + tensor.rank;
  if (rank == 0 || std::find(tensor.shape.begin(), end, 0) != end) return {};
  const int64_t size = size_bytes(tensor.dtype);
  ByteView view = bytes_of_rows(tensor.data, 1, size, size);
  for (size_t d = 0; d < rank; ++d) view.add(tensor.shape[d], tensor.strides[d] * size);
  return view;
}

std::optional<bool> share_bytes(const ByteView& a, const ByteView& b) {
  if (!may_share_bytes(a, b)) return false;
  if (a.end - a.begin > kMostBytes || b.end - b.begin > kMostBytes) return std::nullopt;
  Search search;
  search.add(a, 1);
  search.add(b, -1);
  return search.find(static_cast<int64_t>(b.first - a.first));
}

}  // namespace pagoda::engine
