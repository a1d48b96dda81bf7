// KVConsumerPipeline: the consumer's side of a ring in which K and V tiles alternate: K0 V0 K1 V1
// ... in stages 0 1 2 3 ... The order of the matrix products (two Q tiles, FlashAttention-4 and
// CUTLASS):
//
//   S0 = Q0 K0'   S1 = Q1 K0'   release K0        wait V0   O0 = P0 V0
//   for n = 1 ..: wait Kn   S0 = Q0 Kn'   O1 += P1 V(n-1)   release V(n-1)
//                 S1 = Q1 Kn'   release Kn        wait Vn   O0 += P0 Vn
//   O1 += P1 V(last)   release V(last)
//
// so that V of a tile stays in use while the next K is read. w waits, r releases, the stage in
// brackets:
//
//   wK0(0) rK0(0) wV0(1)    wK1(2) rV0(1) rK1(2) wV1(3)    wK2(4) rV1(3) rK2(4) wV2(5) ...  rVlast
//
// Rules: wait_k saves the stage of V and steps before it waits, except for K0; release_k steps
// after it releases; release_v releases the saved stage and does not step.
//
// A stage has num_mma_stages parts, each with its own barriers, so that a product starts when its
// first part has landed. A part of K is [rows, BK0], of V [BK1, columns]. TMAProducerPipeline fills
// the ring.
#pragma once

#include <cstdint>

#include "arch/fault.hpp"
#include "arch/layout/smem_descriptor.hpp"
#include "arch/memory.hpp"
#include "pipeline/kv_tiling.hpp"
#include "pipeline/staged_pipeline.hpp"

namespace pagoda::pipeline {

// `format`: the architecture's matrix descriptor.
template <class T, class Config, arch::DescriptorFormat format = arch::DescriptorFormat::kSm90,
          class Release = ThreadRelease>
struct KVConsumerPipeline {
  static constexpr KVTiling tiling = Config::kv;
  static_assert(tiling.num_kv_stages >= 2, "a V tile is in use while the next K tile is read");
  static constexpr int num_mma_stages = tiling.num_qk_stages;
  static_assert(tiling.num_pv_stages == num_mma_stages, "a stage holds K or V in as many parts");
  static_assert(tiling.fault(sizeof(T)) == nullptr,
                "Config::kv is inconsistent: see KVTiling::fault");
  static constexpr uint32_t full_kv_bytes =
      static_cast<uint32_t>(tiling.k_rows_per_cta() * tiling.padded_depth) * sizeof(T);
  static constexpr uint32_t mma_kv_bytes = full_kv_bytes / num_mma_stages;
  using Pipeline = KVPipeline<tiling.num_kv_stages, num_mma_stages, Release>;

  Pipeline kv_pipeline;
  arch::SmemDescriptor k_smem_descriptor;  // of stage 0
  arch::SmemDescriptor v_smem_descriptor;
  uint32_t v_pipeline_release_index = 0;

  // `smem`: [num_kv_stages][full_kv_bytes], 1024-byte aligned.
  static PAGODA_DEVICE KVConsumerPipeline create(Pipeline kv_pipeline, arch::SharedPtr<T> smem) {
    arch::OperandTile k =
        tile_layout_k_major(sizeof(T), tiling.k_rows_per_cta(), tiling.BK0, tiling.swizzle);
    arch::OperandTile v =
        tile_layout_mn_major(sizeof(T), tiling.v_cols_per_cta(), tiling.BK1, tiling.swizzle);
    k.start_bytes = v.start_bytes = smem.address();
    return {kv_pipeline, encode(describe(k), format), encode(describe(v), format)};
  }
  static PAGODA_DEVICE KVConsumerPipeline create(arch::MBarrier* mbar, arch::SharedPtr<T> smem) {
    return create(Pipeline::consumer(mbar), smem);
  }

  // Waits until a part of the current stage is full; returns the part's byte offset from the start
  // of the ring.
  template <int mma_stage>
  PAGODA_DEVICE uint32_t wait(arch::Where where = arch::Where::current()) const {
    kv_pipeline.template consumer_wait<mma_stage>(where);
    return arch::mutable_stage("K stages share memory", kv_pipeline.state.index) * full_kv_bytes +
           mma_stage * mma_kv_bytes;
  }

  // pre_increment: false for K0, and for every part of a tile after the first.
  template <int mma_stage = num_mma_stages - 1, bool pre_increment = true>
  PAGODA_DEVICE arch::SmemDescriptor wait_k(arch::Where where = arch::Where::current()) {
    if constexpr (pre_increment) {
      v_pipeline_release_index = kv_pipeline.state.index;
      kv_pipeline.step();
    }
    return advance(k_smem_descriptor, wait<mma_stage>(where));
  }
  template <int mma_stage = num_mma_stages - 1>
  PAGODA_DEVICE arch::SmemDescriptor wait_v(arch::Where where = arch::Where::current()) const {
    return advance(v_smem_descriptor, wait<mma_stage>(where));
  }

  // Call after the commit of the products that read the tile.
  template <int mma_stage = num_mma_stages - 1>
  PAGODA_DEVICE void release_k(int32_t predicate, arch::Where where = arch::Where::current()) {
    kv_pipeline.template consumer_release<mma_stage>(predicate, where);
  }
  template <int mma_stage = num_mma_stages - 1>
  PAGODA_DEVICE void release_v(int32_t predicate,
                               arch::Where where = arch::Where::current()) const {
    kv_pipeline.template consumer_release_at<mma_stage>(v_pipeline_release_index, predicate, where);
  }
  // The last V: no wait_k has saved its stage, so it is the current stage.
  template <int mma_stage = num_mma_stages - 1>
  PAGODA_DEVICE void release_last_v(int32_t predicate,
                                    arch::Where where = arch::Where::current()) const {
    kv_pipeline.template consumer_release_at<mma_stage>(kv_pipeline.state.index, predicate, where);
  }
};

}  // namespace pagoda::pipeline
