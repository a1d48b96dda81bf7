// Buffers that copy K and V by cp.async.
#pragma once

#include "kernels/common/kv_buffer/storage.hpp"
#include "operand/async_kv_buffer.hpp"

namespace pagoda::kernels::kv_buffer {

template <class Sizes>
struct Buffers<Sizes, Staging::kAsync> {
  static constexpr TileConfig tile = Sizes::tile;
  using K = operand::AsyncKVBuffer<Sizes::k_config, typename Sizes::KCore, tile.BN, tile.WN(),
                                   tile.k_BK, Sizes::threads, tile.k_tiles>;
  using V = operand::AsyncKVBuffer<Sizes::v_config, typename Sizes::VCore, tile.BN, tile.WN(),
                                   tile.v_BK, Sizes::threads, tile.v_tiles>;
};

}  // namespace pagoda::kernels::kv_buffer
