// One head of one token is a contiguous row: load it as floats, divide by the scale, store it.
#include "backends/cpu/append_kv.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/parallel_shares.hpp"
#include "core/array_elements.hpp"
#include "core/element.hpp"

namespace pagoda::cpu {
namespace {

constexpr int64_t kBlock = 64;               // elements converted at a time
constexpr int64_t kElementsPerShare = 8192;  // fewer do not pay for another thread

// Dispatches on the dtype once per block, not once per element.
void load_block(const std::byte* from, DType dtype, int64_t count, float* to) {
  switch (dtype) {
    case DType::kF32: std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float)); return;
    case DType::kF16:
      for (int64_t i = 0; i < count; ++i) to[i] = core::load_element(from, DType::kF16, i);
      return;
    case DType::kBF16:
      for (int64_t i = 0; i < count; ++i) to[i] = core::load_element(from, DType::kBF16, i);
      return;
    case DType::kF8E4M3: return;  // validation rejects fp8 sources
  }
}

void store_block(const float* from, float scale, DType dtype, int64_t count, std::byte* to) {
  switch (dtype) {
    case DType::kF32: std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float)); return;
    case DType::kF16:
      for (int64_t i = 0; i < count; ++i) core::store_element(to, DType::kF16, i, from[i]);
      return;
    case DType::kBF16:
      for (int64_t i = 0; i < count; ++i) core::store_element(to, DType::kBF16, i, from[i]);
      return;
    case DType::kF8E4M3:
      for (int64_t i = 0; i < count; ++i) {
        core::store_element(to, DType::kF8E4M3, i, from[i] / scale);
      }
      return;
  }
}

void convert_row(const std::byte* from, DType from_dtype, std::byte* to, DType to_dtype,
                 int64_t count, float scale) {
  if (from_dtype == to_dtype) {  // never fp8, so there is no scale
    std::memcpy(to, from, static_cast<size_t>(count * size_bytes(to_dtype)));
    return;
  }
  std::array<float, kBlock> block;
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t n = std::min(kBlock, count - begin);
    load_block(from + begin * size_bytes(from_dtype), from_dtype, n, block.data());
    store_block(block.data(), scale, to_dtype, n, to + begin * size_bytes(to_dtype));
  }
}

// K or V: its new rows, its cache and its scales.
struct Side {
  const ConstTensor& from;
  const Tensor& to;
  float scale;
  const ConstTensor& scale_per_head;

  [[nodiscard]] float scale_of(int64_t head) const {
    if (!scale_per_head.present()) return scale;
    return static_cast<const float*>(scale_per_head.data)[head * scale_per_head.strides[0]];
  }
};

void append_token(const Side& side, int64_t token, int64_t slot, bool is_nhd) {
  const ConstTensor& from = side.from;
  const Tensor& to = side.to;
  const size_t row_axis = is_nhd ? 1 : 2, head_axis = is_nhd ? 2 : 1;
  const int64_t page_size = to.shape[row_axis];
  const int64_t cache_row =
      slot / page_size * to.strides[0] + slot % page_size * to.strides[row_axis];
  for (int64_t head = 0; head < from.shape[1]; ++head) {
    const int64_t source = token * from.strides[0] + head * from.strides[1];
    const int64_t target = cache_row + head * to.strides[head_axis];
    convert_row(static_cast<const std::byte*>(from.data) + source * size_bytes(from.dtype),
                from.dtype, static_cast<std::byte*>(to.data) + target * size_bytes(to.dtype),
                to.dtype, from.shape[2], side.scale_of(head));
  }
}

}  // namespace

void append_kv(const AppendKV& append, Executor& executor) {
  const Side k{append.k_new, append.k_cache, append.kv_scales.k, append.kv_scales.k_per_head};
  const Side v{append.v_new, append.v_cache, append.kv_scales.v, append.kv_scales.v_per_head};
  const std::span<const int64_t> slots = core::elements(append.slot_mapping);
  const bool is_nhd = append.layout == PageLayout::kNHD;
  const int64_t elements_per_token =
      append.k_new.shape[1] * (append.k_new.shape[2] + append.v_new.shape[2]);
  parallel_shares(executor, append.k_new.shape[0], kElementsPerShare / elements_per_token + 1,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t token = begin; token < end; ++token) {
                      const int64_t slot = slots[static_cast<size_t>(token)];
                      if (slot < 0) continue;
                      append_token(k, token, slot, is_nhd);
                      append_token(v, token, slot, is_nhd);
                    }
                  });
}

}  // namespace pagoda::cpu
