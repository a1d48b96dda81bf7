// The KVBuffers that tests use, as AMD's matrix instructions multiply them: 64 keys a tile, four
// waves of 64 lanes.
#pragma once

#include "core/element.hpp"
#include "operand/buffer_row_loader.hpp"
#include "operand/kv_buffer.hpp"
#include "operand/mfma.hpp"
#include "operand/transposed_kv_buffer.hpp"
#include "testing/material/kv_buffers.hpp"

namespace pagoda::material {

inline constexpr int kMfmaThreads = 256;

// `size` 32: 32x32x8; 16: 16x16x16.
template <class T, int size, int group, bool transpose_b>
using MfmaCore = operand::TiledTensorCore<float, T, operand::MmaShape{size, size, 256 / size},
                                          group, transpose_b>;

// K in either layout; a wave has WN keys.
template <class T, int size, int group, bool is_row_major, int WN, int stages = 1, int tiles = 1,
          operand::Elements elements = operand::Elements::kAny>
using MfmaK =
    operand::KVBufferImpl<operand::KVBufferConfig::k(kBN, WN, 32), MfmaCore<T, size, group, true>,
                          is_row_major ? operand::row_major_swizzle(4)
                                       : operand::blocked_swizzle(kBN),
                          kBN, WN, 32, 128, kMfmaThreads, stages, is_row_major, tiles, elements>;
// V as it is stored, in either layout; a wave has all columns (WN 64) or a quarter of them (16).
template <class T, int size, int group, bool is_row_major, int WN, int depth, int BK = 32,
          int stages = 1, int tiles = 1, operand::Elements elements = operand::Elements::kAny>
using MfmaV = operand::KVBufferImpl<
    operand::KVBufferConfig::v(kBN, WN, BK, depth), MfmaCore<T, size, group, false>,
    is_row_major ? operand::row_major_swizzle(depth / 8) : operand::blocked_swizzle(BK), kBN, WN,
    BK, depth, kMfmaThreads, stages, is_row_major, tiles, elements>;

// Prefill: a wave multiplies all keys; V is transposed.
template <class T, int stages = 1, int tiles = 1,
          operand::Elements elements = operand::Elements::kAny>
using MfmaPrefillK = MfmaK<T, 32, 2, false, kBN, stages, tiles, elements>;
template <class T, int depth = 128, int BK = 32, int stages = 1, int tiles = 1,
          operand::Elements elements = operand::Elements::kAny>
using MfmaPrefillV = operand::TransposedKVBuffer<operand::KVBufferConfig::v(kBN, kBN, BK, depth),
                                                 MfmaCore<T, 32, 2, false>, kBN, kBN, BK, depth,
                                                 kMfmaThreads, stages, tiles, elements>;
// Token generation: four waves share the keys of S and the columns of O.
template <class T, int stages = 1, int tiles = 1,
          operand::Elements elements = operand::Elements::kAny>
using MfmaTokenK = MfmaK<T, 16, 2, true, 16, stages, tiles, elements>;
template <class T, int depth, int BK = 32, int stages = 1, int tiles = 1,
          operand::Elements elements = operand::Elements::kAny>
using MfmaTokenV = MfmaV<T, 16, BK % 32 == 0 ? 2 : 1, true, 16, depth, BK, stages, tiles, elements>;

}  // namespace pagoda::material
