// The load role where TMA can't load K and V: two warps of each CTA copy its part of them row by
// row (GatheredRows) to the slots that Load would fill, in the same order. Out-of-range rows become
// zeros, so there is no tail of V to zero.
#pragma once

#include <cstdint>

#include "arch/fault.hpp"
#include "arch/fence.hpp"
#include "arch/warp.hpp"
#include "kernels/common/sm100/gathered_rows.hpp"
#include "kernels/mha_sm100_d512/rows.hpp"

namespace pagoda::mha_sm100_d512 {

// element_bytes: of the KV cache.
template <class Config, int element_bytes>
class Gather {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  static constexpr int BN = tile.BN, BK1 = tile.BK1();
  // A slot has as many keys of K as of V.
  using Rows = kernels::sm100::GatheredRows<T, element_bytes, BK1, tile.BK0, tile.swizzle>;

  // `warp`: 0 or 1. All lanes call.
  PAGODA_DEVICE Gather(const AttentionParams& params, Storage<Config>& storage, int warp, int rank)
      : params_(params),
        storage_(storage),
        ring_(Ops::Ring::producer(storage.ring)),
        warp_(warp),
        rank_(rank) {}

  PAGODA_DEVICE void run() {
    WorkReader reader(storage_.work);
    for (; reader.next(); reader.release()) {
      const Work work = reader.work();
      if (work.walk.num_tiles > 0) gather(work);
    }
    // Waits until the leader's commits have released every slot: a commit must not arrive in the
    // shared memory of a CTA that has exited.
    ring_.producer_drain();
  }

 private:
  // K(0) K(1) V(0) K(2) V(1) .. V(last), the order in which the MMAs read them.
  PAGODA_DEVICE void gather(const Work& work) {
    const operand::SequenceRows keys = params_.sequences.keys.sequence(work.sequence);
    int32_t i = work.walk.num_tiles - 1;
    gather_k(work, keys, kernels::first_key_of<Config>(work.walk, i));
    PAGODA_NO_UNROLL
    for (; i >= 0; --i) {
      if (i > 0) gather_k(work, keys, kernels::first_key_of<Config>(work.walk, i - 1));
      gather_v(work, keys, kernels::first_key_of<Config>(work.walk, i), work.walk.valid_keys(i));
    }
  }

  // This CTA's half of the keys.
  PAGODA_DEVICE void gather_k(const Work& work, const operand::SequenceRows& keys, int32_t column) {
    const Rows rows(kernels::sm100::gathered_k<element_bytes>(params_, work.kv_head), keys,
                    column + rank_ * (BN / kPair), work.rows.seqlen_kv, warp_);
    PAGODA_NO_UNROLL
    for (int32_t depth = 0; depth < params_.dim_qk; depth += tile.BK0) {
      fill_slot(rows, depth, params_.dim_qk);
    }
  }

  // This CTA's half of the columns of each section. The MMAs read the first `valid_keys` keys of
  // the tile: a part past them is not loaded.
  PAGODA_DEVICE void gather_v(const Work& work, const operand::SequenceRows& keys, int32_t column,
                              int32_t valid_keys) {
    const auto v = kernels::sm100::gathered_v<element_bytes>(params_, work.kv_head);
    PAGODA_NO_UNROLL
    for (int section = 0; section * tile.section_columns() < params_.dim_vo; ++section) {
      const int32_t cta_columns = computed_columns<Config>(params_, section) / kPair;
      const int32_t begin = section * tile.section_columns() + rank_ * cta_columns;
      const int32_t end =
          begin + cta_columns < params_.dim_vo ? begin + cta_columns : params_.dim_vo;
      PAGODA_NO_UNROLL
      for (int32_t part = 0; part < valid_keys; part += BK1) {
        fill_slot(Rows(v, keys, column + part, work.rows.seqlen_kv, warp_), begin, end);
      }
    }
  }

  PAGODA_DEVICE void fill_slot(const Rows& rows, int32_t begin, int32_t end) {
    // Waits until the MMAs that read this slot have completed; the leader's commit arrives.
    ring_.producer_acquire();
    const uint32_t stage = arch::mutable_stage("K and V stages share memory", ring_.state.index);
    rows.copy(storage_.kv.at(static_cast<int32_t>(stage) * Ops::slot_elements), begin, end);
    // Orders this lane's stores before the MMAs' reads through the async proxy; syncwarp then
    // orders all lanes' stores before the arrival of one lane.
    arch::fence_proxy_async_shared();
    arch::syncwarp();
    if (arch::elect_one() != 0) ring_.producer_mbar().arrive_remote(kLeader);
    ring_.step();
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  typename Ops::Ring ring_;
  int warp_, rank_;
};

}  // namespace pagoda::mha_sm100_d512
