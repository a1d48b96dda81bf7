// RelayCase: K and V of the kernels of kv_relay.hpp and the sums that they must store; and the
// tilings that more than one test uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "testing/material/kv_relay.hpp"

namespace pagoda::material {

struct SharedRing3 {
  static constexpr pipeline::KVTiling kv{
      .BN = 32, .BK0 = 64, .BK1 = 32, .padded_depth = 64, .num_kv_stages = 3};
};
struct SharedRing3x2 {  // stages x parts of K and of V
  static constexpr pipeline::KVTiling kv{.BN = 32,
                                         .BK0 = 64,
                                         .BK1 = 16,
                                         .padded_depth = 128,
                                         .num_kv_stages = 3,
                                         .num_qk_stages = 2,
                                         .num_pv_stages = 2};
};
struct SplitRings2x2 {  // stages x parts of K
  static constexpr pipeline::KVTiling kv{
      .BN = 32, .BK0 = 64, .BK1 = 32, .padded_depth = 128, .num_kv_stages = 2, .num_qk_stages = 2};
};
struct SplitRings3x4 {
  static constexpr pipeline::KVTiling kv{.BN = 16,
                                         .BK0 = 32,
                                         .BK1 = 16,
                                         .padded_depth = 128,
                                         .num_kv_stages = 3,
                                         .num_qk_stages = 4,
                                         .swizzle = arch::Swizzle::k64B};
};

template <class Kernel>
class RelayCase {
 public:
  static constexpr pipeline::KVTiling tiling = Kernel::tiling;

  RelayCase(int num_tiles, uint64_t seed)
      : num_tiles_(num_tiles),
        kv_(static_cast<size_t>(2 * num_rows() * tiling.padded_depth)),
        sums_(static_cast<size_t>(2 * num_tiles * kv_relay::kConsumers), 0) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    for (uint16_t& element : kv_) element = static_cast<uint16_t>(random());
    for (int tile = 0; tile < num_tiles; ++tile) {
      const uint16_t* const k = kv_.data() + tile * tiling.BN * tiling.padded_depth;
      uint32_t* const k_sums = sums_.data() + 2 * tile * kv_relay::kConsumers;
      for (int part = 0; part < tiling.num_qk_stages; ++part) {
        add_sums(k + part * tiling.BK0, tiling.BN, tiling.BK0, k_sums);
      }
      for (int part = 0; part < tiling.num_pv_stages; ++part) {
        add_sums(k + kv_.size() / 2 + part * tiling.BK1 * tiling.padded_depth, tiling.BK1,
                 tiling.padded_depth, k_sums + kv_relay::kConsumers);
      }
    }
  }

  // K, then V: [2, num_tiles * BN, padded_depth].
  [[nodiscard]] const std::vector<uint16_t>& kv() const { return kv_; }
  // The expected output: [2 * num_tiles, kConsumers], K0 V0 K1 V1 ...
  [[nodiscard]] const std::vector<uint32_t>& sums() const { return sums_; }

  // Parameters of a launch whose buffers have these addresses. make_map(TensorMapSpec) makes the
  // target's tensor map.
  template <class MakeMap>
  [[nodiscard]] KVRelayParams params(const void* kv, uint32_t* out, MakeMap make_map) const {
    const auto map = [&](uint64_t first_byte, int rows) {
      const auto depth = static_cast<uint64_t>(tiling.padded_depth);
      return make_map(arch::TensorMapSpec{
          .rank = 2,
          .address = reinterpret_cast<uint64_t>(kv) + first_byte,
          .dims = {depth, static_cast<uint64_t>(num_rows())},
          .strides_bytes = {depth * 2},
          .box = {static_cast<uint32_t>(tiling.swizzle_elements(2)), static_cast<uint32_t>(rows)},
          .swizzle = tiling.swizzle});
    };
    return {map(0, tiling.BN), map(kv_.size(), tiling.BK1), out, num_tiles_};
  }

 private:
  [[nodiscard]] int num_rows() const { return num_tiles_ * tiling.BN; }

  // Adds to each consumer's sum its elements of one part of a tile: `width` columns of `rows` rows,
  // in panels as wide as the swizzle; consumer w % kConsumers reads the 16-byte word w.
  static void add_sums(const uint16_t* part, int rows, int width, uint32_t* sums) {
    constexpr int kPanel = tiling.swizzle_elements(2);
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < width; ++column) {
        const auto dense =
            static_cast<uint32_t>((column / kPanel * rows + row) * kPanel + column % kPanel) * 2;
        const uint32_t word = swizzle_address(dense, tiling.swizzle) / 16;
        sums[word % kv_relay::kConsumers] += part[row * tiling.padded_depth + column];
      }
    }
  }

  int num_tiles_;
  std::vector<uint16_t> kv_;
  std::vector<uint32_t> sums_;
};

}  // namespace pagoda::material
