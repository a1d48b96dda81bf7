// Buffers that stage K and V in registers.
#pragma once

#include <type_traits>

#include "kernels/common/kv_buffer/storage.hpp"
#include "operand/kv_buffer.hpp"
#include "operand/transposed_kv_buffer.hpp"

namespace pagoda::kernels::kv_buffer {

template <class Sizes, operand::Elements elements>
struct RegisterBuffers {
  static constexpr TileConfig tile = Sizes::tile;
  static constexpr operand::VectorSwizzle swizzle_of(const operand::KVBufferConfig& config) {
    return Sizes::token_gen ? operand::row_major_swizzle(config.btile_dim1 / 8)
                            : operand::blocked_swizzle(config.btile_dim0);
  }
  using K =
      operand::KVBufferImpl<Sizes::k_config, typename Sizes::KCore, swizzle_of(Sizes::k_config),
                            tile.BN, tile.WN(), tile.k_BK, tile.depth_qk, Sizes::threads,
                            tile.num_stages, Sizes::token_gen, tile.k_tiles, elements>;
  using V = std::conditional_t<
      tile.transposes_v,
      operand::TransposedKVBuffer<Sizes::v_config, typename Sizes::VCore, tile.BN, tile.WN(),
                                  tile.v_BK, tile.depth_vo, Sizes::threads, tile.num_stages,
                                  tile.v_tiles, elements>,
      operand::KVBufferImpl<Sizes::v_config, typename Sizes::VCore, swizzle_of(Sizes::v_config),
                            tile.BN, tile.WN(), tile.v_BK, tile.depth_vo, Sizes::threads,
                            tile.num_stages, Sizes::token_gen, tile.v_tiles, elements>>;
};

template <class Sizes>
struct Buffers<Sizes, Staging::kRegisters> : RegisterBuffers<Sizes, operand::Elements::kAny> {};
template <class Sizes>
struct Buffers<Sizes, Staging::kVectors> : RegisterBuffers<Sizes, operand::Elements::kVectors> {};

}  // namespace pagoda::kernels::kv_buffer
