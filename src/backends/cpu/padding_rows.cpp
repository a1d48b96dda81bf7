// Zeros are 0 bytes in every dtype.
#include "backends/cpu/padding_rows.hpp"

#include <cstddef>
#include <cstring>
#include <limits>

namespace pagoda::cpu {
namespace {

void fill(const core::RowView& view, int64_t row, int32_t head) {
  if (view.data == nullptr) return;
  static_cast<float*>(view.data)[row * view.row_stride + head * view.head_stride] =
      -std::numeric_limits<float>::infinity();
}

}  // namespace

void zero_padding_rows(const core::Problem& p) {
  const int64_t size = size_bytes(p.out.dtype);
  for (int64_t row = p.cu_seqlens_q.back(); row < p.total_q; ++row) {
    for (int32_t head = 0; head < p.num_q_heads; ++head) {
      const int64_t at = row * p.out.row_stride + head * p.out.head_stride;
      std::memset(static_cast<std::byte*>(p.out.data) + at * size, 0,
                  static_cast<size_t>(p.head_dim_vo * size));
      fill(p.lse, row, head);
      fill(p.row_max, row, head);
    }
  }
}

}  // namespace pagoda::cpu
