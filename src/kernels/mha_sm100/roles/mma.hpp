// The MMA role: one lane issues every MMA of the CTA, or of the CTA pair. Order over the KV tiles
// of a work tile with two halves; n counts from the last KV tile to the first:
//
//   S0 = Q0 K(0)'   S1 = Q1 K(0)'   O0 = P0 V(0)
//   { S0 = Q0 K(n)'   O1 += P1 V(n-1)   S1 = Q1 K(n)'   O0 += P0 V(n) }      n = 1 ..
//   O1 += P1 V(last)
//
// Two other groups of MMAs run between S of a half and the P V that uses it: they overlap its
// softmax. S overwrites the P that the previous P V read, without a wait: MMAs of one thread
// execute in order.
#pragma once

#include <cstdint>

#include "arch/debug.hpp"
#include "arch/fault.hpp"
#include "arch/layout/instruction_descriptor.hpp"
#include "kernels/common/sm100/mma_types.hpp"
#include "kernels/mha_sm100/rings.hpp"

namespace pagoda::mha_sm100 {

template <class Config>
class MmaIssuer {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int BN = tile.BN;
  static constexpr int k_step = tile.mma_k();
  static constexpr int parts = tile.num_mma_stages();                  // of K and of V
  static constexpr int steps_of_part = tile.kv_tiling().BK1 / k_step;  // of P V
  using Group = typename Ops::Group;
  using Types = kernels::sm100::MmaTypes<T>;
  using Mma = arch::UMma<Types::kind, tile.ctas>;

  PAGODA_DEVICE MmaIssuer(const AttentionParams& params, Storage<Config>& storage,
                          Tmem<Config> tmem)
      : storage_(storage),
        tmem_(tmem),
        rings_(storage),
        qk_steps_((params.dim_qk + k_step - 1) / k_step),
        scores_(instruction(arch::Major::kK, BN)),
        output_(instruction(arch::Major::kMN, Ops::output_columns(params))) {
    arch::OperandTile q = Ops::q_tile;
    q.start_bytes = storage.q.data().address();
    q_ = arch::encode(arch::describe(q), arch::DescriptorFormat::kSm100);
  }

  // One lane calls; `work` has KV tiles.
  PAGODA_DEVICE void run(const Work& work) {
    if (is_kv_split_in_cta<Config>(work)) {
      run_kv_split(work.walk);
    } else {
      run_halves(work);
    }
  }

 private:
  // KV split within the CTA: S0 = Q0 K(0)'
  // { S1 = Q0 K(1)'   O0 += P0 V(0)   S0 = Q0 K(2)'   O1 += P1 V(1)   .. }
  PAGODA_DEVICE void run_kv_split(const mask::KVTileRange& walk) {
    const int32_t last = walk.num_tiles - 1;
    wait_q<0>();
    issue_qk<0, Tile::kFirst>();
    rings_.release_k();
    for (int32_t n = 1; n <= last; ++n) {
      const int32_t keys = walk.valid_keys(last - (n - 1));
      wait_v();  // before K(n), which lands later
      if (n % 2 != 0) {
        issue_qk<1, Tile::kNext>();
        issue_pv<0, Tile::kSame>(keys, n == 1);
      } else {
        issue_qk<0, Tile::kNext>();
        issue_pv<1, Tile::kSame>(keys, n == 2);
      }
      rings_.release_v();
      rings_.release_k();
    }
    if (last % 2 == 0) {
      issue_pv<0, Tile::kNext>(walk.valid_keys(0), false);
    } else {
      issue_pv<1, Tile::kNext>(walk.valid_keys(0), last == 1);
    }
    rings_.release_last_v();
  }

  PAGODA_DEVICE void run_halves(const Work& work) {
    const mask::KVTileRange& walk = work.walk;
    const bool has_second = num_halves<Config>(work) == 2;
    int32_t n = walk.num_tiles - 1;
    wait_q<0>();
    issue_qk<0, Tile::kFirst>();
    if (has_second) {
      wait_q<1>();
      issue_qk<1, Tile::kSame, 1>();
    }
    rings_.release_k();
    issue_pv<0, Tile::kNext>(walk.valid_keys(n), true);
    while (n-- > 0) {
      const int32_t last_keys = walk.valid_keys(n + 1);
      issue_qk<0, Tile::kNext>();
      if (has_second) issue_pv<1, Tile::kSame>(last_keys, n == walk.num_tiles - 2);
      rings_.release_v();
      if (has_second) issue_qk<1, Tile::kSame, 1>();
      rings_.release_k();
      issue_pv<0, Tile::kNext>(walk.valid_keys(n), false);
    }
    if (has_second) issue_pv<1, Tile::kSame>(walk.valid_keys(0), walk.num_tiles == 1);
    rings_.release_last_v();
  }

  static PAGODA_DEVICE arch::InstructionDescriptor instruction(arch::Major b_major, int32_t n) {
    return arch::encode(arch::InstructionDescriptorFields{.kind = Types::kind,
                                                          .a_type = Types::type,
                                                          .b_type = Types::type,
                                                          .b_major = b_major,
                                                          .m = tile.ctas * kRows,
                                                          .n = n});
  }

  template <int half>
  PAGODA_DEVICE void wait_q() {
    // Waits until Q has landed; TMA completes the bytes that the load-Q lane of each CTA expects.
    Group::wait(storage_.q_full[half], q_phase_ >> half & 1U);
    q_phase_ ^= 1U << half;
  }

  // Which tile of K or V the MMAs read: the first of the work tile (K only), the next one, part by
  // part as it lands; or the same as before (for the other half), which has landed.
  enum class Tile : uint8_t { kFirst, kNext, kSame };

  // S = Q K', for the rows of half `q_half`.
  template <int half, Tile key, int q_half = 0, int part = 0>
  PAGODA_DEVICE void issue_qk() {
    constexpr int steps = tile.kv_tiling().BK0 / k_step;
    if constexpr (part == 0) arch::trace_begin(half == 0 ? "S0" : "S1");
    if constexpr (key == Tile::kFirst) k_[part] = rings_.template wait_first_k<part>();
    if constexpr (key == Tile::kNext) k_[part] = rings_.template wait_k<part>();
    constexpr arch::OperandTile q_tile = Ops::q_tile, k_tile = Ops::KProducer::tile_layout;
    constexpr uint32_t q_start = q_half * Ops::q_elements * sizeof(T);
    PAGODA_UNROLL
    for (int i = 0; i < steps; ++i) {
      const int step = part * steps + i;
      if (step >= qk_steps_) break;  // the rest is past the head dim
      Mma::ss(tmem_.s(half), arch::advance(q_, q_start + tile_offset(q_tile, 0, k_step * step)),
              arch::advance(k_[part], tile_offset(k_tile, 0, k_step * i)), scores_, step > 0);
    }
    if constexpr (part + 1 < parts) {
      issue_qk<half, key, q_half, part + 1>();
    } else {
      Group::commit(storage_.s_full[half]);
      arch::trace_end();
    }
  }

  // Waits until the parts of V that begin in MMA steps [begin, end) have landed.
  template <int begin = 0, int end = BN / k_step>
  PAGODA_DEVICE void wait_v() {
    pipeline::for_each_part<parts>([&]<int part>() {
      constexpr int first = part * steps_of_part;
      if constexpr (first >= begin && first < end) v_[part] = rings_.template wait_v<part>();
    });
  }

  // O += P V over the first `keys` keys of the tile, or O = P V; part by part as softmax stores P.
  template <int half, Tile value>
  PAGODA_DEVICE void issue_pv(int32_t keys, bool is_first) {
    constexpr int steps = BN / k_step, first_steps = tile.first_part() / k_step;
    arch::trace_begin(half == 0 ? "O0" : "O1");
    const int32_t needed = (keys + k_step - 1) / k_step;
    // Waits until the softmax warps have stored the first part of P, and the correction warps have
    // rescaled O (or read the finished O before it).
    Group::wait_tmem(storage_.p_full[half][0], p_phase_ >> half & 1U);
    if constexpr (value == Tile::kNext) wait_v<0, first_steps>();
    arch::tcgen05_fence_after_thread_sync();  // orders the wait before the MMAs that read P
    issue_pv_steps<half, 0, first_steps>(needed, is_first);
    // Waits until the softmax warps have stored the rest of P; all of S has been read then.
    Group::wait_tmem(storage_.p_full[half][1], p_phase_ >> half & 1U);
    p_phase_ ^= 1U << half;
    if constexpr (value == Tile::kNext) wait_v<first_steps, steps>();
    arch::tcgen05_fence_after_thread_sync();  // as above
    issue_pv_steps<half, first_steps, steps>(needed, false);
    Group::commit(storage_.o_full[half]);
    arch::trace_end();
  }
  template <int half, int begin, int end>
  PAGODA_DEVICE void issue_pv_steps(int32_t needed, bool is_first) {
    constexpr arch::OperandTile v_tile = Ops::VProducer::tile_layout;
    PAGODA_UNROLL
    for (int step = begin; step < end; ++step) {
      if (step >= needed) break;
      const int p_step = arch::mutable_value("P of the tile's first keys", step, 0);
      const int v_step = arch::mutable_value("V of the tile's first keys", step, 0);
      Mma::ts(tmem_.o(half), tmem_.p(half).columns(8 * p_step),
              arch::advance(v_[v_step / steps_of_part],
                            tile_offset(v_tile, 0, k_step * (v_step % steps_of_part))),
              output_, !is_first || step > begin);
    }
  }

  Storage<Config>& storage_;
  Tmem<Config> tmem_;
  ConsumerRings<Config> rings_;
  int32_t qk_steps_;
  arch::InstructionDescriptor scores_, output_;
  arch::SmemDescriptor q_{}, k_[parts]{}, v_[parts]{};
  uint32_t q_phase_ = 0, p_phase_ = 0;  // one bit per half
};

}  // namespace pagoda::mha_sm100
