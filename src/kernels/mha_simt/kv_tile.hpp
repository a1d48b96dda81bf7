// KVTile: the keys of one KV tile of a warp, and the copy of their rows of K and V to shared
// memory, converted to fp32: of K a chunk of elements of all keys at a time, of V some keys.
#pragma once

#include <cstdint>

#include "arch/thread.hpp"
#include "kernels/common/work_tile.hpp"
#include "kernels/mha_simt/elements.hpp"
#include "kernels/mha_simt/storage.hpp"

namespace pagoda::mha_simt {

template <class Config>
class KVTile {
 public:
  static constexpr TileConfig tile = Config::tile;
  using SharedMemory = Storage<Config>;

  PAGODA_DEVICE KVTile(Storage<Config>& storage, int warp)
      : kv_(storage.kv.at(warp * SharedMemory::kKVFloats)),
        offsets_(storage.offsets.at(warp * 2 * TileConfig::BN)) {}

  // Looks up the rows of keys first .. first + count - 1, one a lane. A syncwarp must follow.
  PAGODA_DEVICE void find_rows(const kernels::AttentionParams& params, const kernels::Work& work,
                               const operand::SequenceRows& rows, int32_t first, int32_t count) {
    count_ = count;
    const int32_t key = arch::lane_idx();
    if (key >= count) return;
    const operand::KeyCoordinates at = rows.at(static_cast<uint32_t>(first + key));
    arch::store(offsets_ + key, params.k_rows.offset(at.outer, at.row, work.kv_head));
    arch::store(offsets_ + (TileConfig::BN + key),
                params.v_rows.offset(at.outer, at.row, work.kv_head));
  }

  // Elements first .. first + kChunk - 1 of K; v_keys() keys of V from first_key on. Zeros past the
  // head dim and past the last key, whose memory may hold NaN. Between two syncwarps: all lanes
  // have read what was there, and none reads this.
  PAGODA_DEVICE void stage_k(const kernels::AttentionParams& params, int32_t first) const {
    stage<TileConfig::BN, TileConfig::kChunk, SharedMemory::kKStride>(
        params.k_data, params.kv_dtype, offsets_, count_, first, params.dim_qk);
  }
  PAGODA_DEVICE void stage_v(const kernels::AttentionParams& params, int first_key) const {
    stage<tile.v_keys(), tile.depth_vo, SharedMemory::kVStride>(
        params.v_data, params.kv_dtype, offsets_ + (TileConfig::BN + first_key), count_ - first_key,
        0, params.dim_vo);
  }

  [[nodiscard]] PAGODA_DEVICE int32_t num_keys() const { return count_; }
  // An element of `key` in shared memory.
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<float> k(int key, int element) const {
    return kv_ + (key * SharedMemory::kKStride + element);
  }
  [[nodiscard]] PAGODA_DEVICE arch::SharedPtr<float> v(int key, int element) const {
    return kv_ + (key * SharedMemory::kVStride + element);
  }

 private:
  // Where O has many registers, few are left for loads.
  static PAGODA_HOST_DEVICE constexpr int keys_in_flight(int columns) {
    const int loads = tile.depth_vo > 256 ? 16 : 32;
    int keys = 16;
    while (keys > 1 && keys * columns > loads) keys /= 2;
    return keys;
  }

  // `keys` rows of `width` elements.
  template <int keys, int width, int stride>
  PAGODA_DEVICE void stage(arch::GlobalPtr<const void> data, DType dtype,
                           arch::SharedPtr<int64_t> offsets, int32_t count, int32_t first,
                           int32_t dim) const {
    constexpr int columns = width / tile.warp_size;  // of a lane
    // Keys whose loads a lane issues before it stores the first.
    constexpr int in_flight = keys_in_flight(columns);
    static_assert(width % tile.warp_size == 0 && keys % in_flight == 0);
    with_dtype(dtype, [&]<DType type>() {
      PAGODA_NO_UNROLL
      for (int key = 0; key < keys; key += in_flight) {
        stage_keys<type, in_flight, columns, stride>(data, offsets, key, count, first, dim);
      }
    });
  }
  template <DType dtype, int keys, int columns, int stride>
  PAGODA_DEVICE void stage_keys(arch::GlobalPtr<const void> data, arch::SharedPtr<int64_t> offsets,
                                int first_key, int32_t count, int32_t first, int32_t dim) const {
    const int lane = arch::lane_idx();
    float values[keys][columns];
    PAGODA_UNROLL
    for (int i = 0; i < keys; ++i) {
      const int key = first_key + i;
      const int64_t row = key < count ? arch::load(offsets + key) : 0;
      PAGODA_UNROLL
      for (int c = 0; c < columns; ++c) {
        const int32_t element = first + c * tile.warp_size + lane;
        values[i][c] =
            key < count && element < dim ? load_element<dtype>(data, row + element) : 0.0F;
      }
    }
    PAGODA_UNROLL
    for (int i = 0; i < keys; ++i) {
      PAGODA_UNROLL
      for (int c = 0; c < columns; ++c) {
        arch::store(kv_ + ((first_key + i) * stride + c * tile.warp_size + lane), values[i][c]);
      }
    }
  }

  arch::SharedPtr<float> kv_;
  arch::SharedPtr<int64_t> offsets_;
  int32_t count_ = 0;
};

}  // namespace pagoda::mha_simt
