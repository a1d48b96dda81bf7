// The KVBuffers that tests use: those of prefill and of token generation by NVIDIA's m16n8k16, 64
// keys a tile, four warps. Those of AMD: mfma_buffers.hpp.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/element.hpp"
#include "operand/async_kv_buffer.hpp"
#include "operand/kv_buffer.hpp"
#include "operand/mma_sync.hpp"

namespace pagoda::material {

inline constexpr int kBufferThreads = 128;
inline constexpr int kBN = 64;

template <class T, int group, bool transpose_b>
using Core = operand::TiledTensorCore<float, T, operand::MmaShape{16, 8, 16}, group, transpose_b>;

// Prefill: a warp multiplies all keys. K: 32 elements a step; V: 32 keys.
template <class T, int stages = 1, int tiles = 1, int group = 2>
using PrefillK = operand::KVBufferImpl<operand::KVBufferConfig::k(kBN, kBN, 32),
                                       Core<T, group, true>, operand::blocked_swizzle(kBN), kBN,
                                       kBN, 32, 128, kBufferThreads, stages, false, tiles>;
template <class T, int stages = 1, int tiles = 1, int group = 2>
using PrefillV = operand::KVBufferImpl<operand::KVBufferConfig::v(kBN, kBN, 32, 128),
                                       Core<T, group, false>, operand::blocked_swizzle(32), kBN,
                                       kBN, 32, 128, kBufferThreads, stages, false, tiles>;
// Token generation: four warps share the keys of S and the columns of O.
template <class T, int stages = 1, int tiles = 1, int group = 2>
using TokenK = operand::KVBufferImpl<operand::KVBufferConfig::k(kBN, 16, 32), Core<T, group, true>,
                                     operand::row_major_swizzle(4), kBN, 16, 32, 128,
                                     kBufferThreads, stages, true, tiles>;
template <class T, int depth, int BK = 32, int stages = 1, int tiles = 1, int group = 2>
using TokenV = operand::KVBufferImpl<operand::KVBufferConfig::v(kBN, 16, BK, depth),
                                     Core<T, group, false>, operand::row_major_swizzle(depth / 8),
                                     kBN, 16, BK, depth, kBufferThreads, stages, true, tiles>;

template <class T, int WN, int BK, int tiles, int group = 2>
using AsyncK = operand::AsyncKVBuffer<operand::KVBufferConfig::k(kBN, WN, BK), Core<T, group, true>,
                                      kBN, WN, BK, kBufferThreads, tiles>;
template <class T, int WN, int BK, int depth, int tiles, int group = 2>
using AsyncV = operand::AsyncKVBuffer<operand::KVBufferConfig::v(kBN, WN, BK, depth),
                                      Core<T, group, false>, kBN, WN, BK, kBufferThreads, tiles>;

template <class Buffer>
inline constexpr int kWarpSizeOf = Buffer::TensorCore::Instruction::kLanes;
template <class Buffer>
inline constexpr int kThreadsOf = 4 * kWarpSizeOf<Buffer>;
template <class Buffer>
inline constexpr bool kIsAsync = !requires {
  typename Buffer::LoadTile;
};
template <class Buffer>
inline constexpr bool kIsK = Buffer::config.iterator_axis == 1;
template <class Buffer>  // a TransposedKVBuffer: its layout has no rows of keys
inline constexpr bool kIsTransposed = !requires {
  Buffer::smem_layout.is_blocked;
};
// Register stages.
template <class Buffer>
inline constexpr int kNumStages =
    static_cast<int>(sizeof(typename Buffer::LoadTile) / 16) / Buffer::stage_vectors;

// The bits of `value` as an element of shared memory.
template <class T>
uint16_t bits_of(float value) {
  if constexpr (std::is_same_v<T, arch::Half>) {
    return core::float_to_f16(value);
  } else {
    return core::float_to_bf16(value);
  }
}

}  // namespace pagoda::material
