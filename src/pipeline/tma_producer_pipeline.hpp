// TMAProducerPipeline: the producer's side of the ring of K or V, filled by TMA. K is loaded in
// num_qk_stages parts [k_rows_per_cta, BK0], K-major; V in num_pv_stages parts [BK1,
// v_cols_per_cta], MN-major. A load role calls, for every tile,
//
//   k.acquire_k<part>();                           waits for the consumers' release
//   TMADestination to = k.get_k<part>(elect);      arrive with expect-tx of the part's bytes
//   rows.tma_copy_k(..., to.smem, to.mbar);        the copies complete these bytes
//   k.commit_step();                               after the last part
//
// and acquire_v, get_v for V. In a ring that K and V share (KVConsumerPipeline) one object loads
// both, in as many parts. Where another barrier counts the bytes, or no bytes are counted
// (gathered rows), get_k_smem and get_v_smem give the stage's memory alone.
#pragma once

#include <cstdint>
#include <utility>

#include "arch/fault.hpp"
#include "arch/memory.hpp"
#include "pipeline/kv_tiling.hpp"
#include "pipeline/staged_pipeline.hpp"

namespace pagoda::pipeline {

// The destination of one tile of `elements`, and the mbarrier on which its bytes complete.
template <class T, int elements>
struct TMADestination {
  static constexpr uint32_t bytes = elements * sizeof(T);
  arch::MBarrier& mbar;
  arch::SharedPtr<T> smem;
};

template <class T, class Config, bool is_k = true, class Release = ThreadRelease>
struct TMAProducerPipeline {
  static constexpr KVTiling tiling = Config::kv;
  static_assert(tiling.fault(sizeof(T)) == nullptr,
                "Config::kv is inconsistent: see KVTiling::fault");

  static constexpr int num_qk_stages_effective =  // parts of a tile
      is_k ? tiling.num_qk_stages : tiling.num_pv_stages;
  static constexpr arch::OperandTile tile_layout =
      is_k ? tile_layout_k_major(sizeof(T), tiling.k_rows_per_cta(), tiling.BK0, tiling.swizzle)
           : tile_layout_mn_major(sizeof(T), tiling.v_cols_per_cta(), tiling.BK1, tiling.swizzle);
  static constexpr int elements = tile_layout.mn * tile_layout.k;  // of one part
  static constexpr int elements_full = elements * num_qk_stages_effective;
  static constexpr uint32_t tile_bytes = elements * sizeof(T);
  static constexpr uint32_t bytes = tile_bytes;

  using Pipeline = StagedPipeline<tiling.num_kv_stages, num_qk_stages_effective, Release>;
  using SMemType = arch::SharedPtr<T>;
  using PairType = TMADestination<T, elements>;
  using KPairType = PairType;

  Pipeline pipeline;
  SMemType smem;  // [num_kv_stages][num_qk_stages_effective][elements]

  // A producer at the start of its ring.
  static PAGODA_DEVICE TMAProducerPipeline create(arch::MBarrier* mbar, SMemType smem) {
    return create(Pipeline::producer(mbar), smem);
  }
  // A producer at the position of `pipeline`.
  static PAGODA_DEVICE TMAProducerPipeline create(Pipeline pipeline, SMemType smem) {
    return {pipeline, smem};
  }

  template <int qk_stage = 0>
  PAGODA_DEVICE SMemType get_smem() const {
    static_assert(qk_stage >= 0 && qk_stage < num_qk_stages_effective, "no such part of a tile");
    const uint32_t stage = arch::mutable_stage(
        is_k ? "K stages share memory" : "V stages share memory", pipeline.state.index);
    return smem + (static_cast<int32_t>(stage) * elements_full + qk_stage * elements);
  }

  template <int qk_stage = 0>
  PAGODA_DEVICE PairType get_tile() const {
    return {pipeline.template producer_mbar<qk_stage>(), get_smem<qk_stage>()};
  }
  // The lane with e != 0 arrives with expect-tx: tile_bytes, or the bytes of the valid pages, plus
  // other copies that complete on this barrier (Q with the first K).
  template <int qk_stage = 0>
  PAGODA_DEVICE PairType get_tile(int32_t e, uint32_t expected_bytes = bytes,
                                  arch::Where where = arch::Where::current()) const {
    pipeline.template producer_mbar<qk_stage>().arrive_expect_tx_if(e, expected_bytes, where);
    return get_tile<qk_stage>();
  }

  // Waits for the consumers to release the part. Where a whole warp runs the role, syncwarp() must
  // follow before the copies: all lanes must have seen the release before the elected lane refills
  // the part, else a late lane misses the phase and waits forever. A role of one lane needs none.
  template <int qk_stage = 0>
  PAGODA_DEVICE void acquire(arch::Where where = arch::Where::current()) const {
    pipeline.template producer_acquire<qk_stage>(where);
  }
  // Only steps: the copies themselves complete the barrier.
  PAGODA_DEVICE void commit_step() { pipeline.step(); }

  // After the last tile: waits until the consumers have released every stage.
  PAGODA_DEVICE void drain(arch::Where where = arch::Where::current()) {
    pipeline.producer_drain(where);
  }

  // The same by operand name. In a ring that K and V share parts of both have the same bytes.
  template <int qk_stage = 0>
  PAGODA_DEVICE SMemType get_k_smem() const {
    static_assert(is_k, "this pipeline loads V");
    return get_smem<qk_stage>();
  }
  template <int qk_stage = 0>
  PAGODA_DEVICE KPairType get_k() const {
    static_assert(is_k, "this pipeline loads V");
    return get_tile<qk_stage>();
  }
  template <int qk_stage = 0>
  PAGODA_DEVICE KPairType get_k(int32_t e, uint32_t expected_bytes = bytes,
                                arch::Where where = arch::Where::current()) const {
    static_assert(is_k, "this pipeline loads V");
    return get_tile<qk_stage>(e, expected_bytes, where);
  }
  template <int qk_stage = 0>
  PAGODA_DEVICE void acquire_k(arch::Where where = arch::Where::current()) const {
    static_assert(is_k, "this pipeline loads V");
    acquire<qk_stage>(where);
  }
  static constexpr bool serves_v = !is_k || (tiling.num_qk_stages == tiling.num_pv_stages &&
                                             elements == tiling.v_cols_per_cta() * tiling.BK1);
  template <int pv_stage = 0>
  PAGODA_DEVICE SMemType get_v_smem() const {
    static_assert(serves_v, "a stage of K has other parts than one of V");
    return get_smem<pv_stage>();
  }
  template <int pv_stage = 0>
  PAGODA_DEVICE PairType get_v() const {
    static_assert(serves_v, "a stage of K has other parts than one of V");
    return get_tile<pv_stage>();
  }
  template <int pv_stage = 0>
  PAGODA_DEVICE PairType get_v(int32_t e, uint32_t expected_bytes = bytes,
                               arch::Where where = arch::Where::current()) const {
    static_assert(serves_v, "a stage of K has other parts than one of V");
    return get_tile<pv_stage>(e, expected_bytes, where);
  }
  template <int pv_stage = 0>
  PAGODA_DEVICE void acquire_v(arch::Where where = arch::Where::current()) const {
    static_assert(serves_v, "a stage of K has other parts than one of V");
    acquire<pv_stage>(where);
  }
};

}  // namespace pagoda::pipeline
