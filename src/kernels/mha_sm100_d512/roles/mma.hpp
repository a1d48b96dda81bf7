// The MMA role: one lane of the leader issues every MMA of the pair. Order over the KV tiles of a
// work tile; n counts from the last KV tile to the first:
//
//   S(0) = Q K(0)'   { S(n+1) = Q K(n+1)'   O += P(n) V(n) }      n = 0 ..
//
// Q K' runs one tile ahead, so the softmax of tile n overlaps the MMAs of P(n-1) V(n-1) and of
// S(n+1). S is double-buffered. S(n+1) overwrites S(n-1) without a wait of its own: the softmax
// warps had read it when they arrived for P(n-1), which P(n-1) V(n-1) waited for.
#pragma once

#include <cstdint>

#include "arch/debug.hpp"
#include "arch/fault.hpp"
#include "arch/layout/instruction_descriptor.hpp"
#include "kernels/common/sm100/mma_types.hpp"
#include "kernels/mha_sm100_d512/rows.hpp"

namespace pagoda::mha_sm100_d512 {

template <class Config>
class MmaIssuer {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  using Types = kernels::sm100::MmaTypes<T>;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int k_step = tile.mma_k();
  static constexpr int BK0 = tile.BK0, BK1 = tile.BK1();
  using Mma = arch::UMma<Types::kind, kPair>;

  PAGODA_DEVICE MmaIssuer(const AttentionParams& params, Storage<Config>& storage,
                          Tmem<Config> tmem)
      : storage_(storage),
        tmem_(tmem),
        ring_(Ops::Ring::consumer(storage.ring)),
        dim_qk_(params.dim_qk),
        dim_vo_(params.dim_vo),
        scores_(instruction(arch::Major::kK, tile.BN)),
        q_(descriptor(Ops::q_tile, storage.q.data().address())),
        p_(descriptor(Ops::p_tile, storage.p.data().address())),
        k_(descriptor(Ops::k_tile, storage.kv.data().address())),
        v_(descriptor(Ops::v_tile, storage.kv.data().address())) {
    PAGODA_UNROLL
    for (int section = 0; section < tile.sections(); ++section) {
      output_[section] = instruction(arch::Major::kMN, computed_columns<Config>(params, section));
    }
  }

  // One lane calls; `work` has KV tiles.
  PAGODA_DEVICE void run(const Work& work) {
    // Waits until Q has landed in both CTAs; TMA completes the bytes that their load-Q lanes
    // expect.
    storage_.q_full.wait_cluster(q_phase_);
    q_phase_ ^= 1U;
    const int32_t last = work.walk.num_tiles - 1;
    issue_qk();
    PAGODA_NO_UNROLL
    for (int32_t i = last; i >= 0; --i) {
      if (i > 0) issue_qk();
      issue_pv(work.walk.valid_keys(i), i == last);
    }
  }

 private:
  static PAGODA_DEVICE arch::InstructionDescriptor instruction(arch::Major b_major, int32_t n) {
    return arch::encode(arch::InstructionDescriptorFields{.kind = Types::kind,
                                                          .a_type = Types::type,
                                                          .b_type = Types::type,
                                                          .b_major = b_major,
                                                          .m = tile.pair_rows(),
                                                          .n = n});
  }
  static PAGODA_DEVICE arch::SmemDescriptor descriptor(arch::OperandTile operand,
                                                       uint32_t address) {
    operand.start_bytes = address;
    return arch::encode(arch::describe(operand), arch::DescriptorFormat::kSm100);
  }

  // Waits until the current slot is full in both CTAs (TMA completes its bytes, or a load warp
  // arrives after it has zeroed a tail of V). Returns its offset in bytes.
  PAGODA_DEVICE uint32_t wait_slot() const {
    ring_.full(ring_.state.index, 0).wait_cluster(ring_.state.phase);
    return arch::mutable_stage("K and V stages share memory", ring_.state.index) *
           static_cast<uint32_t>(tile.slot_bytes());
  }

  // S = Q K', slot by slot along the head dim.
  PAGODA_DEVICE void issue_qk() {
    constexpr arch::OperandTile q_tile = Ops::q_tile, k_tile = Ops::k_tile;
    constexpr uint32_t q_part = tile.block_rows * BK0 * sizeof(T);
    arch::trace_begin("S");
    arch::SmemDescriptor q = q_;
    PAGODA_NO_UNROLL
    for (int32_t depth = 0; depth < dim_qk_; depth += BK0) {
      const arch::SmemDescriptor k = arch::advance(k_, wait_slot());
      PAGODA_UNROLL
      for (int step = 0; step < BK0 / k_step; ++step) {
        if (depth + k_step * step >= dim_qk_) break;  // the rest is past the head dim
        Mma::ss(tmem_.s(buffer_), arch::advance(q, tile_offset(q_tile, 0, k_step * step)),
                arch::advance(k, tile_offset(k_tile, 0, k_step * step)), scores_,
                depth > 0 || step > 0);
      }
      if (depth + BK0 >= dim_qk_) commit_to_both(storage_.s_full[buffer_]);
      ring_.consumer_release(1);
      q = arch::advance(q, q_part);
    }
    buffer_ ^= 1U;
    arch::trace_end();
  }

  // O += P V over the first `keys` keys of the tile, or O = P V.
  PAGODA_DEVICE void issue_pv(int32_t keys, bool is_first) {
    arch::trace_begin("O");
    // Waits until the softmax warps of both CTAs have read S and stored P, and their correction
    // warps have rescaled O (or read the finished O before it).
    storage_.p_full.wait_cluster(p_phase_);
    p_phase_ ^= 1U;
    arch::tcgen05_fence_after_thread_sync();  // orders the wait before the MMAs that write O
    PAGODA_UNROLL
    for (int section = 0; section < tile.sections(); ++section) {
      if (section * tile.section_columns() >= dim_vo_) break;
      const bool is_last = (section + 1) * tile.section_columns() >= dim_vo_;
      issue_pv_part<0>(section, keys, is_first, is_last && keys <= BK1);
      if (keys > BK1) issue_pv_part<1>(section, keys, is_first, is_last);
    }
    arch::trace_end();
  }
  template <int part>
  PAGODA_DEVICE void issue_pv_part(int section, int32_t keys, bool is_first, bool is_last) {
    constexpr arch::OperandTile p_tile = Ops::p_tile, v_tile = Ops::v_tile;
    const arch::SmemDescriptor v = arch::advance(v_, wait_slot());
    PAGODA_UNROLL
    for (int step = 0; step < BK1 / k_step; ++step) {
      const int key = part * BK1 + k_step * step;
      if (key >= keys) break;
      const int p_key = arch::mutable_value("P of the tile's first keys", key, 0);
      Mma::ss(tmem_.o(section), arch::advance(p_, tile_offset(p_tile, 0, p_key)),
              arch::advance(v, tile_offset(v_tile, 0, k_step * step)), output_[section],
              !is_first || key > 0);
    }
    if (is_last) commit_to_both(storage_.o_full);
    ring_.consumer_release(1);
  }

  Storage<Config>& storage_;
  Tmem<Config> tmem_;
  typename Ops::Ring ring_;
  int32_t dim_qk_, dim_vo_;
  arch::InstructionDescriptor scores_, output_[tile.sections()]{};
  arch::SmemDescriptor q_, p_, k_, v_;
  uint32_t buffer_ = 0;  // the S that the next issue_qk() writes
  uint32_t q_phase_ = 0, p_phase_ = 0;
};

}  // namespace pagoda::mha_sm100_d512
