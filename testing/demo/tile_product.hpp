// The smallest kernel with the parts of a Hopper GEMM: one lane loads tiles of A and B by TMA into
// a ring, a warpgroup multiplies them with wgmma and keeps one group in flight.
//
//   C [64, 64] = sum over k of A [64, k] B [64, k]'      bf16 in, fp32 out
#pragma once

#include <cstdint>

#include "arch/debug.hpp"
#include "arch/layout/fragment_layout.hpp"
#include "arch/layout/operand_tile.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/tma.hpp"
#include "arch/warp.hpp"
#include "arch/wgmma.hpp"
#include "pipeline/staged_pipeline.hpp"

namespace pagoda::demo {

struct TileProduct {
  using T = arch::BFloat16;
  static constexpr int kSize = 64;  // rows of A and of B, and columns of one tile: a 128-byte line
  static constexpr int kStages = 2;
  static constexpr int kConsumerWarps = 4;
  static constexpr int kThreads = 160, kClusterSize = 1, kMinArch = 90, kMaxArch = 90;

  struct Params {
    arch::TensorMap a, b;  // [kSize, num_tiles * kSize], boxes [kSize, kSize], 128-byte swizzle
    arch::GlobalPtr<float> out;  // [kSize, kSize]
    int32_t num_tiles;
  };
  using Pipeline = pipeline::StagedPipeline<kStages>;
  struct Storage {
    arch::SharedArray<T, kStages * kSize * kSize, 1024> a;
    arch::SharedArray<T, kStages * kSize * kSize, 1024> b;
    arch::MBarrier mbar[Pipeline::num_mbars];
  };

  static PAGODA_DEVICE void load(const Params& params, Storage& storage) {
    Pipeline ring = Pipeline::producer(storage.mbar);
    for (int tile = 0; tile < params.num_tiles; ++tile) {
      const auto stage = static_cast<int32_t>(ring.state.index) * kSize * kSize;
      ring.producer_acquire();  // the products that read this stage are complete
      arch::MBarrier& full = ring.producer_mbar();
      full.arrive_expect_tx(2 * kSize * kSize * sizeof(T));
      arch::tma_load<2>(1, storage.a.at(stage), params.a, {{tile * kSize, 0}}, full);
      arch::tma_load<2>(1, storage.b.at(stage), params.b, {{tile * kSize, 0}}, full);
      ring.step();
    }
  }

  static PAGODA_DEVICE arch::SmemDescriptor descriptor(arch::SharedPtr<T> tile) {
    return arch::encode(arch::describe({.start_bytes = tile.address(), .mn = kSize, .k = kSize}),
                        arch::DescriptorFormat::kSm90);
  }

  static PAGODA_DEVICE void multiply(const Params& params, Storage& storage) {
    Pipeline ring = Pipeline::consumer(storage.mbar);
    float sums[kSize / 2];
    uint32_t previous = 0;
    for (int tile = 0; tile < params.num_tiles; ++tile) {
      const auto stage = static_cast<int32_t>(ring.state.index) * kSize * kSize;
      ring.consumer_wait();  // TMA has filled the stage
      arch::wgmma_fence();
      PAGODA_UNROLL
      for (int k = 0; k < kSize / 16; ++k) {  // 32 bytes along the line
        arch::Wgmma<T, kSize>::ss(
            sums, arch::advance(descriptor(storage.a.at(stage)), static_cast<uint32_t>(k) * 32),
            arch::advance(descriptor(storage.b.at(stage)), static_cast<uint32_t>(k) * 32),
            tile > 0 || k > 0);
      }
      arch::wgmma_commit_group();
      if (tile > 0) {
        arch::wgmma_wait_group<1>();  // the products before these no longer read their stage
        ring.consumer_release_at(previous, arch::elect_one());
      }
      previous = ring.state.index;
      ring.step();
    }
    arch::wgmma_wait_group<0>();
    arch::wgmma_pin(sums);
    // The last stage is not released: no load follows.
    const int thread = arch::thread_idx();
    PAGODA_UNROLL
    for (int i = 0; i < kSize / 2; ++i) {
      const arch::MatrixIndex at = arch::wgmma_accumulator(thread, i);
      arch::store(params.out + at.row * kSize + at.column, sums[i]);
    }
  }

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    if (arch::thread_idx() == 0) {
      Pipeline::init(storage.mbar, kConsumerWarps, "tiles");
      arch::fence_mbarrier_init();
    }
    arch::syncthreads();
    if (arch::warp_idx() == kConsumerWarps) {
      const arch::Role role("load");
      if (arch::elect_one() != 0) load(params, storage);
    } else {
      const arch::Role role("multiply");
      multiply(params, storage);
    }
  }
};

}  // namespace pagoda::demo
