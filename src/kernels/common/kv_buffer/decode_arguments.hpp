// decode_arguments: DecodeArguments from the general arguments of the same call. Host only.
#pragma once

#include <cstdint>

#include "kernels/common/attention_params.hpp"

namespace pagoda::kernels::kv_buffer {

// What num_keys() (decode_work.hpp) reads, of dense or paged keys.
inline void set_lengths(const operand::KeyRows& keys, DecodeArguments& decode) {
  if (keys.kind == operand::KeyRowsKind::kPaged) {
    decode.lengths = keys.paged.lengths;
    decode.first_page_of = keys.paged.first_page_of;
    decode.page_shift = 0;
    while (1 << decode.page_shift < keys.paged.page_size) ++decode.page_shift;
  } else {
    decode.lengths = keys.dense.lengths;
    decode.num_keys = static_cast<int32_t>(keys.dense.keys_per_batch);
  }
}

// The call must have the layout that has_decode_layout() (decode_call.cpp) asks for. `clusters`:
// the number of them, or of CTAs, among which the KV tiles of the batch are divided as `shares`
// says; `min_tiles`: each takes so many or more; `token_tiles`: row tiles, of `rows` rows each, of
// a KV head; `window_keys`: DecodeArguments.
inline DecodeArguments decode_arguments(const AttentionArguments& call, int32_t clusters,
                                        int32_t min_tiles, DecodeShares shares,
                                        int32_t token_tiles = 1, int32_t rows = 16,
                                        int32_t window_keys = INT32_MAX) {
  const operand::KeyRows& keys = call.sequences.keys;
  const auto bytes = [](int64_t stride, size_t element) {
    return static_cast<int32_t>(static_cast<int64_t>(element) * stride);
  };
  const size_t q_element = size_bytes(call.q_dtype), kv_element = size_bytes(call.kv_dtype);
  const auto operand = [&](const RowsView& view) -> DecodeArguments::Operand {
    return {bytes(view.sequence_stride, kv_element), bytes(view.row_stride, kv_element),
            bytes(view.head_stride, kv_element)};
  };
  DecodeArguments result;
  result.cluster_share = static_cast<float>((1.0 + 0x1p-21) / clusters);
  result.min_tiles = min_tiles;
  result.shares = shares;
  result.window_keys = window_keys;
  result.token_tiles = static_cast<uint8_t>(token_tiles);
  result.tile_tokens = static_cast<uint8_t>(rows / call.group);
  result.by_row_tiles = arch::Divisor(call.num_kv_heads * token_tiles);
  set_lengths(keys, result);
  if (keys.kind == operand::KeyRowsKind::kPaged) {
    result.pages = keys.paged.pages;
    result.table_stride = static_cast<int32_t>(keys.paged.table_stride);
  }
  const bool is_ragged = call.sequences.cu_rows != nullptr;
  const bool has_tokens = is_ragged || call.sequences.padded_rows > 1;
  result.q_row_bytes =
      bytes(has_tokens ? call.q_rows.row_stride : call.q_rows.sequence_stride, q_element);
  result.q_head_bytes = bytes(call.q_rows.head_stride, q_element);
  result.k = operand(call.k_rows);
  result.v = operand(call.v_rows);
  return result;
}

}  // namespace pagoda::kernels::kv_buffer
