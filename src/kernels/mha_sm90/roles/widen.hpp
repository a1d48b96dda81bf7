// widen: the role that widens K and V of an fp8 cache to f16, a warpgroup. TMA loads a tile of e4m3
// elements; wgmma multiplies operands of one type. f16 also under bf16 queries, which consumers
// convert (RowPower): bf16 takes three times as many instructions an element.
//
// A warp widens a quarter of a tile's keys. A lane takes 16 elements of a key, one read and two
// stores of 16 bytes. The eight lanes of a shared memory access have eight neighbouring keys, whose
// words the swizzle spreads over all banks, in the loaded tile and in the widened one.
#pragma once

#include <algorithm>
#include <cstdint>

#include "arch/fault.hpp"
#include "arch/fence.hpp"
#include "arch/math.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "kernels/mha_sm90/schedule.hpp"
#include "kernels/mha_sm90/storage.hpp"

namespace pagoda::mha_sm90 {

// A warp's part of one tile, without synchronisation. `depth`: columns of the widened tile.
template <class Config, int depth>
class WidenedTile {
 public:
  using Ops = Operands<Config>;
  using T = typename Ops::Product;
  using Words = arch::Words<4>;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int warps = 4, kKeys = 8;  // of an access
  static constexpr int kColumns = 64;  // of the four words of a key that a warp reads at once
  static constexpr int keys = tile.BN / warps;  // of a warp
  static constexpr int blocks = keys / kKeys;
  static constexpr int reads = blocks * ((depth + kColumns - 1) / kColumns);  // of a lane
  // Reads in flight: one alone takes longer than its conversion. General scores leave 40 registers.
  static constexpr int ahead = std::min(tile.converter_registers > 40 ? 3 : 1, reads);
  static_assert(keys % kKeys == 0 && depth % 16 == 0);

  // `from`, `to`: a stage of the tile as TMA has loaded it, and a stage of the consumers. Keys from
  // `num_keys` on become zeros.
  static PAGODA_DEVICE void run(arch::SharedPtr<arch::Float8E4M3> from, arch::SharedPtr<T> to,
                                int num_keys) {
    num_keys = arch::mutable_value("V past the last key kept", num_keys, tile.BN);
    if (num_keys >= tile.BN) {
      widen<false>(from.template as<const char>(), to.template as<char>(), num_keys);
    } else {
      widen<true>(from.template as<const char>(), to.template as<char>(), num_keys);
    }
  }

 private:
  static constexpr int loaded_width = static_cast<int>(swizzle_width_bytes(tile.loaded_swizzle()));
  static constexpr int width = static_cast<int>(swizzle_width_bytes(tile.swizzle));

  template <bool is_partial>
  static PAGODA_DEVICE void widen(arch::SharedPtr<const char> from, arch::SharedPtr<char> to,
                                  int num_keys) {
    const int first = arch::warp_idx() % warps * keys + arch::lane_idx() % kKeys;
    const int column = arch::lane_idx() / kKeys * 16;
    const int32_t loaded = loaded_offset(first, column), widened = widened_offset(first, column);
    const auto load = [&](int n) {
      const int key = n % blocks * kKeys, c = n / blocks * kColumns;
      if (is_partial && first + key >= num_keys) return Words{{0, 0, 0, 0}};
      return arch::load((from + loaded_after(loaded, key, c)).template as<const Words>());
    };
    Words raw[ahead];
    PAGODA_UNROLL
    for (int n = 0; n < ahead; ++n) raw[n] = load(n);
    PAGODA_UNROLL
    for (int n = 0; n < reads; ++n) {
      Words wide[2];
      arch::widen_e4m3_f16(raw[n % ahead], wide);
      if (n + ahead < reads) raw[n % ahead] = load(n + ahead);
      const int c = n / blocks * kColumns;
      if (depth - c < kColumns && column >= depth - c) continue;  // this lane has no such columns
      const int32_t put = widened_after(widened, n % blocks * kKeys, c);
      arch::store((to + put).template as<Words>(), wide[0]);
      arch::store((to + (put ^ 16)).template as<Words>(), wide[1]);
    }
  }

  // Swizzled bytes from the tile's start to 16 columns of a key in the loaded tile, and to the
  // first eight of them in the widened one. The other eight are where bit 4 of that is inverted.
  static PAGODA_DEVICE int32_t loaded_offset(int key, int column) {
    return static_cast<int32_t>(swizzle_address(
        static_cast<uint32_t>((column / loaded_width * tile.BN + key) * loaded_width +
                              column % loaded_width),
        tile.loaded_swizzle()));
  }
  static PAGODA_DEVICE int32_t widened_offset(int key, int column) {
    const int bytes = 2 * column;
    return static_cast<int32_t>(swizzle_address(
        static_cast<uint32_t>((bytes / width * tile.BN + key) * width + bytes % width),
        tile.swizzle));
  }
  // The same, `keys` and `columns` further, given that of a key below 8 and a column below 64. Both
  // are constants: the swizzle's pattern repeats every 8 keys, and in every panel. The second 64
  // columns of a loaded panel differ from the first in one bit, swizzled or not.
  static constexpr PAGODA_DEVICE int32_t loaded_after(int32_t offset, int keys_after, int columns) {
    const int panel = columns / loaded_width * tile.BN * loaded_width;
    return (offset ^ columns % loaded_width) + panel + keys_after * loaded_width;
  }
  static constexpr PAGODA_DEVICE int32_t widened_after(int32_t offset, int keys_after,
                                                       int columns) {
    return offset + 2 * columns * tile.BN + keys_after * width;
  }
};

// All threads of the widening warpgroup.
template <class Config>
PAGODA_DEVICE void widen(Storage<Config>& storage) {
  using Ops = Operands<Config>;
  constexpr TileConfig tile = Config::tile;
  auto loaded_k = Ops::LoadedKRing::consumer(storage.conversion.k_ring);
  auto loaded_v = Ops::LoadedVRing::consumer(storage.conversion.v_ring);
  auto k = Ops::KRing::producer(storage.k_ring);
  auto v = Ops::VRing::producer(storage.v_ring);
  const auto convert = [](auto& loaded, auto& ring, const auto& widen_stage) {
    loaded.consumer_wait();   // load K or V: the bytes of the tile have landed
    ring.producer_acquire();  // every consumer warp has released the stage
    widen_stage(static_cast<int32_t>(loaded.state.index), static_cast<int32_t>(ring.state.index));
    arch::fence_proxy_async_shared();  // orders this lane's stores before wgmma reads them
    // All lanes have read their part of the tile, stored it widened and executed the fence.
    arch::syncwarp();
    const int32_t elect = arch::elect_one();
    ring.producer_mbar().arrive_if(elect);
    ring.step();
    loaded.consumer_release(elect);
  };
  WorkReader reader(storage.work);
  for (; reader.next(); reader.release()) {
    const mask::KVTileRange walk = reader.work().walk;
    const int32_t num_keys = reader.work().rows.seqlen_kv;
    for (int32_t i = walk.num_tiles; i-- > 0;) {
      const int32_t column = kernels::first_key_of<Config>(walk, i);
      convert(loaded_k, k, [&](int32_t from, int32_t to) {
        to = static_cast<int32_t>(arch::mutable_stage("K stages share memory", to));
        WidenedTile<Config, tile.depth_qk>::run(
            storage.conversion.k.at(from * Ops::KProducer::elements),
            storage.k.at(to * Ops::k_elements), tile.BN);
      });
      convert(loaded_v, v, [&](int32_t from, int32_t to) {
        to = static_cast<int32_t>(arch::mutable_stage("V stages share memory", to));
        WidenedTile<Config, tile.depth_vo>::run(
            storage.conversion.v.at(from * Ops::VProducer::elements),
            storage.v.at(to * Ops::v_elements), num_keys - column);
      });
    }
  }
}

}  // namespace pagoda::mha_sm90
