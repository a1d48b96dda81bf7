// Kernels that consist of the pipelines alone: every tile of K and V is loaded into a ring,
// consumers sum its elements, and their sums go through a second ring to a warp that stores them.
// They run on the emulator (tests, `pagoda emulate`) and on a GPU (`./dev gpu`), and show how roles
// are composed.
//
//   warp 0     load     TMA to the K and V ring  TMAProducerPipeline
//   warps 1-2  consume  sums to the result ring  KVConsumerPipeline, StagedPipeline, MBarPipeline
//   warp 3     store    sums to global memory    MBarPipeline
#pragma once

#include <cstdint>

#include "arch/debug.hpp"
#include "arch/layout/types.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/tma.hpp"
#include "arch/warp.hpp"
#include "pipeline/kv_consumer_pipeline.hpp"
#include "pipeline/mbar_pipeline.hpp"
#include "pipeline/tma_producer_pipeline.hpp"

namespace pagoda::material {

struct KVRelayParams {
  // [num_tiles * BN, padded_depth]; boxes of one swizzle width, BN rows of K, BK1 of V.
  arch::TensorMap k, v;
  arch::GlobalPtr<uint32_t> out;  // [2 * num_tiles, kConsumers]: K0 V0 K1 V1 ...
  int32_t num_tiles;              // >= 1
};

namespace kv_relay {

inline constexpr int kThreads = 128;
inline constexpr int kConsumers = 64;  // threads of the consume role
inline constexpr int kConsumerWarps = 2;
inline constexpr int kResultStages = 2;

// The sum of the elements that consumer `thread` reads: the 16-byte words w of the tile with
// w % kConsumers == thread.
template <class T>
PAGODA_DEVICE uint32_t sum_of(arch::SharedPtr<T> tile, int elements, int thread,
                              arch::Where where = arch::Where::current()) {
  uint32_t sum = 0;
  const auto words = tile.template as<arch::Words<4>>();
  for (int i = thread; i < elements * static_cast<int>(sizeof(T)) / 16; i += kConsumers) {
    const arch::Words<4> word = arch::load(words + i, where);
    for (const uint32_t two : word.word) sum += (two & 0xffffU) + (two >> 16);
  }
  return sum;
}

// One TMA box per panel: `rows` rows of one swizzle width.
template <class T>
PAGODA_DEVICE void copy_panels(int32_t elected, const arch::TensorMap& map, arch::SharedPtr<T> to,
                               int rows, int panel_elements, int first_panel, int panels,
                               int first_row, arch::MBarrier& mbar,
                               arch::Where where = arch::Where::current()) {
  for (int panel = 0; panel < panels; ++panel) {
    arch::tma_load<2>(elected, to + panel * rows * panel_elements, map,
                      {{(first_panel + panel) * panel_elements, first_row}}, mbar,
                      arch::Eviction::kNormal, where);
  }
}

// Overwrites the memory of a drained ring, as an epilogue that stages O there does.
template <class T>
PAGODA_DEVICE void reuse(arch::SharedPtr<T> ring, int elements) {
  const auto words = ring.template as<arch::Words<4>>();
  for (int i = arch::lane_idx(); i < elements * static_cast<int>(sizeof(T)) / 16; i += 32) {
    arch::store(words + i, arch::Words<4>{});
  }
}

using ResultPipeline = pipeline::MBarPipeline<kResultStages>;

// The result ring between consume and store.
struct Results {
  ResultPipeline pipeline;
  arch::SharedPtr<uint32_t> slots;  // [kResultStages, kConsumers]

  PAGODA_DEVICE void push(int thread, uint32_t sum) {
    pipeline.producer_acquire();
    arch::store(slots + (static_cast<int32_t>(pipeline.state.index) * kConsumers + thread), sum);
    pipeline.producer_commit();
  }
  PAGODA_DEVICE void write_all(arch::GlobalPtr<uint32_t> out, int count) {
    for (int result = 0; result < count; ++result) {
      pipeline.consumer_wait();
      for (int i = arch::lane_idx(); i < kConsumers; i += 32) {
        arch::store(
            out + result * kConsumers + i,
            arch::load(slots + (static_cast<int32_t>(pipeline.state.index) * kConsumers + i)));
      }
      pipeline.consumer_release();
    }
  }
};

}  // namespace kv_relay

// K and V share one ring, in the order of KVConsumerPipeline, each in num_mma_stages parts.
template <class Config>
struct SharedRingRelay {
  using T = arch::BFloat16;
  using Params = KVRelayParams;
  static constexpr pipeline::KVTiling tiling = Config::kv;
  using Producer = pipeline::TMAProducerPipeline<T, Config>;
  using Consumer = pipeline::KVConsumerPipeline<T, Config>;
  static constexpr int kThreads = kv_relay::kThreads, kClusterSize = 1, kMinArch = 90;

  struct Storage {
    static constexpr int kv_elements = tiling.num_kv_stages * Producer::elements_full;
    arch::SharedArray<T, kv_elements, 1024> kv;
    arch::SharedArray<uint32_t, kv_relay::kResultStages * kv_relay::kConsumers> results;
    arch::MBarrier kv_mbar[Consumer::Pipeline::num_mbars];
    arch::MBarrier result_mbar[kv_relay::ResultPipeline::num_mbars];
  };

  static constexpr int parts = Consumer::num_mma_stages;

  static PAGODA_DEVICE void load_role(const Params& params, Storage& storage) {
    const arch::Role role("load");
    constexpr int panel = tiling.swizzle_elements(sizeof(T));
    const int32_t elected = arch::elect_one();
    Producer kv = Producer::create(storage.kv_mbar, storage.kv.data());
    for (int tile = 0; tile < params.num_tiles; ++tile) {
      const int row = tile * tiling.BN;
      pipeline::for_each_part<parts>([&]<int part>() {
        kv.template acquire_k<part>();
        arch::syncwarp();  // all lanes have seen the release before the elected lane refills
        const auto k = kv.template get_k<part>(elected);
        kv_relay::copy_panels(elected, params.k, k.smem, tiling.BN, panel,
                              part * tiling.BK0 / panel, tiling.BK0 / panel, row, k.mbar);
      });
      kv.commit_step();
      pipeline::for_each_part<parts>([&]<int part>() {
        kv.template acquire_v<part>();
        arch::syncwarp();
        const auto v = kv.template get_v<part>(elected);
        kv_relay::copy_panels(elected, params.v, v.smem, tiling.BK1, panel, 0,
                              tiling.padded_depth / panel, row + part * tiling.BK1, v.mbar);
      });
      kv.commit_step();
    }
    kv.drain();
    kv_relay::reuse(storage.kv.data(), Storage::kv_elements);
  }

  static PAGODA_DEVICE void consume_role(const Params& params, Storage& storage) {
    const arch::Role role("consume");
    const int thread = arch::thread_idx() - 32;
    Consumer kv = Consumer::create(storage.kv_mbar, storage.kv.data());
    kv_relay::Results results{kv_relay::ResultPipeline::producer(storage.result_mbar),
                              storage.results.data()};
    const auto sum_at = [&](uint32_t index, int part) {
      const int32_t first = static_cast<int32_t>(index) * Producer::elements_full;
      return kv_relay::sum_of(storage.kv.at(first + part * Producer::elements), Producer::elements,
                              thread);
    };
    // Parts are summed as they arrive.
    const auto sum_k = [&]<bool is_first>() {
      uint32_t sum = 0;
      pipeline::for_each_part<parts>([&]<int part>() {
        kv.template wait_k<part, !is_first && part == 0>();
        sum += sum_at(kv.kv_pipeline.state.index, part);
      });
      return sum;
    };
    const auto sum_v = [&](uint32_t index) {
      uint32_t sum = 0;
      for (int part = 0; part < parts; ++part) sum += sum_at(index, part);
      return sum;
    };
    const auto wait_v = [&] {
      pipeline::for_each_part<parts>([&]<int part>() { kv.template wait_v<part>(); });
    };
    // One lane per warp releases, after all lanes have read.
    const auto elected = [] {
      arch::syncwarp();
      return arch::elect_one();
    };
    const auto release_k = [&] {
      const int32_t lane = elected();
      pipeline::for_each_part<parts>([&]<int part>() { kv.template release_k<part>(lane); });
    };
    results.push(thread, sum_k.template operator()<true>());
    release_k();
    wait_v();
    for (int tile = 1; tile < params.num_tiles; ++tile) {
      const uint32_t v_index = kv.kv_pipeline.state.index;
      const uint32_t k_sum = sum_k.template operator()<false>();
      results.push(thread, sum_v(v_index));
      const int32_t lane = elected();
      pipeline::for_each_part<parts>([&]<int part>() { kv.template release_v<part>(lane); });
      results.push(thread, k_sum);
      release_k();
      wait_v();
    }
    results.push(thread, sum_v(kv.kv_pipeline.state.index));
    const int32_t lane = elected();
    pipeline::for_each_part<parts>([&]<int part>() { kv.template release_last_v<part>(lane); });
  }

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    if (arch::thread_idx() == 0) {
      Consumer::Pipeline::init(storage.kv_mbar, kv_relay::kConsumerWarps, "kv");
      kv_relay::ResultPipeline::init(storage.result_mbar, kv_relay::kConsumers, 32, "result");
      arch::fence_mbarrier_init();
    }
    arch::syncthreads();
    const int warp = arch::warp_idx();
    if (warp == 0) {
      load_role(params, storage);
    } else if (warp <= kv_relay::kConsumerWarps) {
      consume_role(params, storage);
    } else {
      const arch::Role role("store");
      kv_relay::Results{kv_relay::ResultPipeline::consumer(storage.result_mbar),
                        storage.results.data()}
          .write_all(params.out, 2 * params.num_tiles);
    }
  }
};

// K and V have separate rings, K in parts.
template <class Config>
struct SplitRingRelay {
  using T = arch::BFloat16;
  using Params = KVRelayParams;
  static constexpr pipeline::KVTiling tiling = Config::kv;
  using KProducer = pipeline::TMAProducerPipeline<T, Config, true>;
  using VProducer = pipeline::TMAProducerPipeline<T, Config, false>;
  static constexpr int kThreads = kv_relay::kThreads, kClusterSize = 1, kMinArch = 90;

  struct Storage {
    static constexpr int k_elements = tiling.num_kv_stages * KProducer::elements_full;
    static constexpr int v_elements = tiling.num_kv_stages * VProducer::elements_full;
    arch::SharedArray<T, k_elements, 1024> k;
    arch::SharedArray<T, v_elements, 1024> v;
    arch::SharedArray<uint32_t, kv_relay::kResultStages * kv_relay::kConsumers> results;
    arch::MBarrier k_mbar[KProducer::Pipeline::num_mbars];
    arch::MBarrier v_mbar[VProducer::Pipeline::num_mbars];
    arch::MBarrier result_mbar[kv_relay::ResultPipeline::num_mbars];
  };

  template <int qk_stage = 0>
  static PAGODA_DEVICE void load_k(const Params& params, const KProducer& k, int tile) {
    constexpr int panel = tiling.swizzle_elements(sizeof(T));
    k.template acquire<qk_stage>();
    const auto to = k.template get_tile<qk_stage>(1);
    kv_relay::copy_panels(1, params.k, to.smem, tiling.BN, panel, qk_stage * tiling.BK0 / panel,
                          tiling.BK0 / panel, tile * tiling.BN, to.mbar);
    if constexpr (qk_stage + 1 < tiling.num_qk_stages) load_k<qk_stage + 1>(params, k, tile);
  }

  static PAGODA_DEVICE void load_all(const Params& params, Storage& storage) {
    constexpr int panel = tiling.swizzle_elements(sizeof(T));
    KProducer k = KProducer::create(storage.k_mbar, storage.k.data());
    VProducer v = VProducer::create(storage.v_mbar, storage.v.data());
    for (int tile = 0; tile < params.num_tiles; ++tile) {
      load_k(params, k, tile);
      k.commit_step();
      v.acquire();
      const auto to = v.get_tile(1);
      kv_relay::copy_panels(1, params.v, to.smem, tiling.BN, panel, 0, tiling.padded_depth / panel,
                            tile * tiling.BN, to.mbar);
      v.commit_step();
    }
    v.drain();  // enough: the last V is released after the last K
  }

  template <int qk_stage = 0>
  static PAGODA_DEVICE uint32_t sum_k(typename KProducer::Pipeline& k, Storage& storage,
                                      int thread) {
    const auto stage = static_cast<int32_t>(k.state.index);
    k.template consumer_wait<qk_stage>();
    uint32_t sum = kv_relay::sum_of(
        storage.k.at(stage * KProducer::elements_full + qk_stage * KProducer::elements),
        KProducer::elements, thread);
    arch::syncwarp();
    k.template consumer_release<qk_stage>(arch::elect_one());
    if constexpr (qk_stage + 1 < tiling.num_qk_stages)
      sum += sum_k<qk_stage + 1>(k, storage, thread);
    return sum;
  }

  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    if (arch::thread_idx() == 0) {
      KProducer::Pipeline::init(storage.k_mbar, kv_relay::kConsumerWarps, "k");
      VProducer::Pipeline::init(storage.v_mbar, kv_relay::kConsumerWarps, "v");
      kv_relay::ResultPipeline::init(storage.result_mbar, kv_relay::kConsumers, 32, "result");
      arch::fence_mbarrier_init();
    }
    arch::syncthreads();
    const int warp = arch::warp_idx();
    if (warp == 0) {
      const arch::Role role("load");
      if (arch::elect_one() != 0) load_all(params, storage);  // a role of one lane
      arch::syncwarp();
      kv_relay::reuse(storage.k.data(), Storage::k_elements);
      kv_relay::reuse(storage.v.data(), Storage::v_elements);
    } else if (warp <= kv_relay::kConsumerWarps) {
      const arch::Role role("consume");
      const int thread = arch::thread_idx() - 32;
      auto k = KProducer::Pipeline::consumer(storage.k_mbar);
      auto v = VProducer::Pipeline::consumer(storage.v_mbar);
      kv_relay::Results results{kv_relay::ResultPipeline::producer(storage.result_mbar),
                                storage.results.data()};
      for (int tile = 0; tile < params.num_tiles; ++tile) {
        results.push(thread, sum_k(k, storage, thread));
        v.consumer_wait();
        results.push(thread, kv_relay::sum_of(storage.v.at(static_cast<int32_t>(v.state.index) *
                                                           VProducer::elements_full),
                                              VProducer::elements_full, thread));
        arch::syncwarp();
        v.consumer_release(arch::elect_one());
      }
    } else {
      const arch::Role role("store");
      kv_relay::Results{kv_relay::ResultPipeline::consumer(storage.result_mbar),
                        storage.results.data()}
          .write_all(params.out, 2 * params.num_tiles);
    }
  }
};

}  // namespace pagoda::material
