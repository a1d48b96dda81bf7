// MultiplyAgain: S of a KV tile once more, by one warp, from Q in shared and K in global memory.
// By then the product's registers hold P, and K's stage may hold another tile. Called where P has
// overflowed, for scores that are 2^126 times those before.
#pragma once

#include <cstdint>
#include <type_traits>

#include "arch/layout/types.hpp"
#include "arch/math.hpp"
#include "arch/memory.hpp"
#include "arch/mma.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "core/target.hpp"
#include "kernels/mha_sm90/schedule.hpp"
#include "kernels/mha_sm90/storage.hpp"

namespace pagoda::mha_sm90 {

// By mma.sync, whose accumulators have the layout of wgmma's: 16 rows and 8 keys. A thread's
// operands of 32 columns are 8 neighbouring ones of a row of Q, or of a key, in memory's order:
// sums do not depend on which columns are called which.
template <class Config>
class MultiplyAgain {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  using Product = typename Ops::Product;  // Q is converted in place
  using K = typename Ops::LoadedKV;
  static constexpr TileConfig tile = Config::tile;
  // Eight elements, as they are in memory.
  template <class E>
  using Eight = arch::Words<2 * static_cast<int>(sizeof(E))>;

  // `q`: the consumer's stage of Q. `work` must outlive the object.
  PAGODA_DEVICE MultiplyAgain(const AttentionParams& params, const Work& work, arch::SharedPtr<T> q)
      : params_(params), work_(work), q_(q) {}

  // `column`: first key of the tile, all of whose keys the warp's rows see. `s`: in local memory.
  // Every lane of the warp calls it.
  PAGODA_DEVICE void run(int32_t column, float (&s)[tile.BN / 2]) const {
    const operand::SequenceRows keys = params_.sequences.keys.sequence(work_.sequence);
    PAGODA_NO_UNROLL
    for (int block = 0; block < tile.BN / 8; ++block) {
      const int32_t key = column + 8 * block + arch::lane_idx() / 4;
      const operand::KeyCoordinates at = keys.at(static_cast<uint32_t>(key));
      const auto k = params_.k_data.template as<const K>() +
                     params_.k_rows.offset(at.outer, at.row, work_.kv_head);
      float sums[4] = {0, 0, 0, 0};
      PAGODA_NO_UNROLL
      for (int32_t first = 0; first < tile.depth_qk; first += 32 * kAtOnce) {
        Eight<K> of_k[kAtOnce];
        PAGODA_UNROLL
        for (int i = 0; i < kAtOnce; ++i) {
          of_k[i] = {};
          const int32_t d = first + 32 * i + column_of_lane();
          if (d < params_.dim_qk) {
            of_k[i] = arch::load_read_only((k + d).template as<const Eight<K>>());
          }
        }
        PAGODA_UNROLL
        for (int i = 0; i < kAtOnce; ++i)
          multiply(first + 32 * i + column_of_lane(), of_k[i], sums);
      }
      PAGODA_UNROLL
      for (int i = 0; i < 4; ++i) s[4 * block + i] = sums[i];
    }
    // All lanes have read Q, whose stage one of them releases. With O staged in it, the lanes meet
    // again before that (Consumer::release_q).
    if constexpr (!tile.stages_o_in_q()) arch::syncwarp();
  }

 private:
  // Loads of K in flight: as many as do not spill.
  static constexpr int kAtOnce = tile.depth_qk % 64 == 0 &&
                                         (tile.num_consumers < 3 || tile.depth_qk < 128) &&
                                         tile.depth_qk < 256
                                     ? 2
                                     : 1;
  static_assert(tile.depth_qk % (32 * kAtOnce) == 0);

  static PAGODA_DEVICE int32_t column_of_lane() { return 8 * (arch::lane_idx() % 4); }

  // Adds 32 columns, of which the thread has eight from `d` on.
  PAGODA_DEVICE void multiply(int32_t d, const Eight<K>& of_k, float (&sums)[4]) const {
    const Eight<T> low = load_q(0, d), high = load_q(8, d);
    if constexpr (sizeof(T) == 1) {
      const uint32_t a[4] = {low.word[0], high.word[0], low.word[1], high.word[1]};
      arch::mma_m16n8k32<Product>(sums, a, of_k.word);
    } else {
      arch::Words<4> b;
      if constexpr (sizeof(K) == 1) {
        arch::Words<4> widened[2];
        arch::widen_e4m3_f16({{of_k.word[0], of_k.word[1], 0, 0}}, widened);
        b = widened[0];
      } else {
        b = of_k;
      }
      PAGODA_UNROLL
      for (int i = 0; i < 4; i += 2) {
        const uint32_t a[4] = {low.word[i], high.word[i], low.word[i + 1], high.word[i + 1]};
        const uint32_t of_b[2] = {b.word[i], b.word[i + 1]};
        arch::mma_m16n8k16<Product>(sums, a, of_b);
      }
    }
  }

  // Of row lane / 4 + `row` of the warp's 16.
  [[nodiscard]] PAGODA_DEVICE Eight<T> load_q(int row, int32_t d) const {
    int index = 16 * (arch::warp_idx() % 4) + arch::lane_idx() / 4 + row;
    if constexpr (kernels::kMayPackHeads<Config> && tile.may_have_empty_rows()) {
      // An empty row of a block, which nothing may have written: any other does.
      const int rows = rows_of_consumer<Config>(params_);
      if (index >= rows) index = rows - 1;
    }
    const uint32_t address =
        swizzle_address(q_.address() + Ops::panel_offset(kRows, index, d), tile.swizzle);
    const auto offset = static_cast<int32_t>((address - q_.address()) / sizeof(T));
    return arch::load((q_ + offset).template as<Eight<T>>());
  }

  const AttentionParams& params_;
  const Work& work_;
  arch::SharedPtr<T> q_;
};

}  // namespace pagoda::mha_sm90
