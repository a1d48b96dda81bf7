// The load role where TMA can't load K and V: two warps copy them row by row (GatheredRows).
// Out-of-range rows become zeros, so there is no tail of V to zero.
#pragma once

#include <cstdint>

#include "arch/fence.hpp"
#include "arch/warp.hpp"
#include "kernels/common/sm100/gathered_rows.hpp"
#include "kernels/mha_sm100/rings.hpp"

namespace pagoda::mha_sm100 {

// element_bytes: of the KV cache.
template <class Config, int element_bytes>
class Gather {
 public:
  using Ops = Operands<Config>;
  using T = typename Config::T;
  static constexpr TileConfig tile = Config::tile;
  using Rows = kernels::sm100::GatheredRows<T, element_bytes, tile.BN, tile.depth, tile.swizzle>;

  // `warp`: 0 or 1. All lanes call.
  PAGODA_DEVICE Gather(const AttentionParams& params, Storage<Config>& storage, int warp)
      : params_(params), storage_(storage), rings_(storage), warp_(warp) {}

  PAGODA_DEVICE void run() {
    WorkReader reader(storage_.work);
    for (; reader.next(); reader.release()) {
      const Work work = reader.work();
      const operand::SequenceRows keys = params_.sequences.keys.sequence(work.sequence);
      for (int32_t i = work.walk.num_tiles; i-- > 0;) {
        int32_t column = work.walk.start_column + i * tile.BN;  // BN: not a register
        if constexpr (kernels::kHasFunctorMask<Config>) column = work.walk.first_key(i);
        load_tile<tile.BN>(rings_.k(), rings_.k().get_k_smem(),
                           kernels::sm100::gathered_k<element_bytes>(params_, work.kv_head), keys,
                           work, column);
        load_tile<tile.kv_tiling().BK1>(
            rings_.v(), rings_.v().get_v_smem(),
            kernels::sm100::gathered_v<element_bytes>(params_, work.kv_head), keys, work, column);
      }
    }
    rings_.drain();
  }

 private:
  // Loads this warp's half of the rows of a tile to `to`, the current stage of `ring`, in parts of
  // `part_rows` rows.
  template <int part_rows, class Ring>
  PAGODA_DEVICE void load_tile(Ring& ring, arch::SharedPtr<T> to,
                               const kernels::sm100::GatheredOperand& from,
                               const operand::SequenceRows& keys, const Work& work,
                               int32_t column) {
    const Rows rows(from, keys, column, work.rows.seqlen_kv, warp_);
    // Waits until the MMAs that read this stage have completed; the MMA warp's commit arrives.
    acquire(ring);
    rows.template copy<part_rows>(to, 0, from.dim);
    // Orders this lane's stores before the MMAs' reads through the async proxy; syncwarp then
    // orders all lanes' stores before the arrival of one lane.
    arch::fence_proxy_async_shared();
    arch::syncwarp();
    arrive_full(ring);
    ring.commit_step();
  }
  // The parts of a tile become empty and full together.
  template <class Ring>
  static PAGODA_DEVICE void acquire(const Ring& ring) {
    pipeline::for_each_part<tile.num_mma_stages()>(
        [&]<int part>() { ring.template acquire<part>(); });
  }
  template <class Ring>
  static PAGODA_DEVICE void arrive_full(const Ring& ring) {
    pipeline::for_each_part<tile.num_mma_stages()>([&]<int part>() {
      ring.pipeline.template producer_mbar<part>().arrive_if(arch::elect_one());
    });
  }

  const AttentionParams& params_;
  Storage<Config>& storage_;
  LoadRings<Config> rings_;
  int warp_;
};

}  // namespace pagoda::mha_sm100
