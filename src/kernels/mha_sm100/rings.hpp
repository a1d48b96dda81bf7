// The rings of K and V in shared memory, one shared ring or one each, under one interface: the
// producer's side for the load warp, the consumer's side for the MMA warp.
#pragma once

#include <cstdint>
#include <type_traits>

#include "arch/fault.hpp"
#include "kernels/mha_sm100/storage.hpp"
#include "pipeline/kv_consumer_pipeline.hpp"

namespace pagoda::mha_sm100 {

// --- the producer's side -----------------------------------------------------------------------

// k() and v() are TMAProducerPipelines; the same one where the ring is shared.
template <class Config>
class LoadRings {
 public:
  using Ops = Operands<Config>;
  static constexpr TileConfig tile = Config::tile;

  PAGODA_DEVICE explicit LoadRings(Storage<Config>& storage)
      : k_(Ops::KProducer::create(storage.kv_rings[0], storage.kv.data())),
        v_(Ops::VProducer::create(storage.kv_rings[Storage<Config>::kRings - 1],
                                  storage.kv.at(tile.slots / 2 * Ops::slot_elements))) {}

  PAGODA_DEVICE auto& k() { return k_; }
  PAGODA_DEVICE auto& v() {
    if constexpr (tile.has_shared_ring()) {
      return k_;
    } else {
      return v_;
    }
  }
  // Waits until the MMA warp's commits have released every stage: a commit must not arrive in the
  // shared memory of a CTA that has exited. The last V is released after the last K.
  PAGODA_DEVICE void drain() { v().drain(); }

 private:
  typename Ops::KProducer k_;
  typename Ops::VProducer v_;
};

// --- the consumer's side -----------------------------------------------------------------------

// One lane calls. wait_*<part>: waits until that part of K or V has landed in shared memory; TMA,
// the load warp or the gather warps complete the barrier. release_*: commits, so that every part of
// the stage is released when the MMAs that read it have completed. The order for one work tile is
// that of KVConsumerPipeline:
//   wait_first_k  release_k  wait_v   { wait_k  release_v  release_k  wait_v } ..   release_last_v
template <class Config>
class SharedRing {
 public:
  using Ops = Operands<Config>;
  using Ring = pipeline::KVConsumerPipeline<typename Config::T, typename Ops::KVConfig,
                                            arch::DescriptorFormat::kSm100, typename Ops::Release>;

  PAGODA_DEVICE explicit SharedRing(Storage<Config>& storage)
      : ring_(Ring::create(storage.kv_rings[0], storage.kv.data())) {}

  template <int part>
  PAGODA_DEVICE arch::SmemDescriptor wait_first_k() {
    return ring_.template wait_k<part, false>();
  }
  template <int part>
  PAGODA_DEVICE arch::SmemDescriptor wait_k() {
    return ring_.template wait_k<part, part == 0>();
  }
  template <int part>
  PAGODA_DEVICE arch::SmemDescriptor wait_v() {
    return ring_.template wait_v<part>();
  }
  PAGODA_DEVICE void release_k() {
    pipeline::for_each_part<Ring::num_mma_stages>(
        [&]<int part>() { ring_.template release_k<part>(1); });
  }
  PAGODA_DEVICE void release_v() {
    pipeline::for_each_part<Ring::num_mma_stages>(
        [&]<int part>() { ring_.template release_v<part>(1); });
  }
  PAGODA_DEVICE void release_last_v() {
    pipeline::for_each_part<Ring::num_mma_stages>(
        [&]<int part>() { ring_.template release_last_v<part>(1); });
    ring_.kv_pipeline.step();  // to the first K of the next work tile
  }

 private:
  Ring ring_;
};

template <class Config>
class SplitRings {
 public:
  using Ops = Operands<Config>;
  static constexpr int parts = Config::tile.num_mma_stages();

  PAGODA_DEVICE explicit SplitRings(Storage<Config>& storage)
      : k_(Ops::KRing::consumer(storage.kv_rings[0])),
        v_(Ops::VRing::consumer(storage.kv_rings[1])),
        k_descriptor_(describe_at(Ops::KProducer::tile_layout, storage.kv.data().address())),
        v_descriptor_(
            describe_at(Ops::VProducer::tile_layout,
                        storage.kv.at(Config::tile.slots / 2 * Ops::slot_elements).address())) {}

  template <int part>
  PAGODA_DEVICE arch::SmemDescriptor wait_first_k() {
    k_.template consumer_wait<part>();
    constexpr uint32_t bytes = Ops::KProducer::tile_bytes;
    const uint32_t stage = arch::mutable_stage("K stages share memory", k_.state.index);
    return arch::advance(k_descriptor_, (stage * parts + part) * bytes);
  }
  template <int part>
  PAGODA_DEVICE arch::SmemDescriptor wait_k() {
    if constexpr (part == 0) step_v();
    return wait_first_k<part>();
  }
  template <int part>
  PAGODA_DEVICE arch::SmemDescriptor wait_v() {
    v_.template consumer_wait<part>();
    constexpr uint32_t bytes = Ops::VProducer::tile_bytes;
    const uint32_t stage = arch::mutable_stage("V stages share memory", v_.state.index);
    return arch::advance(v_descriptor_, (stage * parts + part) * bytes);
  }
  PAGODA_DEVICE void release_k() {
    pipeline::for_each_part<parts>([&]<int part>() { k_.template consumer_release<part>(1); });
  }
  PAGODA_DEVICE void release_v() {
    pipeline::for_each_part<parts>(
        [&]<int part>() { v_.template consumer_release_at<part>(v_in_use_, 1); });
  }
  PAGODA_DEVICE void release_last_v() {
    step_v();
    release_v();
  }

 private:
  static PAGODA_DEVICE arch::SmemDescriptor describe_at(arch::OperandTile operand,
                                                        uint32_t address) {
    operand.start_bytes = address;
    return arch::encode(arch::describe(operand), arch::DescriptorFormat::kSm100);
  }
  // Advances to the next V; the current stage stays in use until release_v().
  PAGODA_DEVICE void step_v() {
    v_in_use_ = v_.state.index;
    v_.step();
  }

  typename Ops::KRing k_;
  typename Ops::VRing v_;
  arch::SmemDescriptor k_descriptor_, v_descriptor_;
  uint32_t v_in_use_ = 0;
};

template <class Config>
using ConsumerRings =
    std::conditional_t<Config::tile.has_shared_ring(), SharedRing<Config>, SplitRings<Config>>;

}  // namespace pagoda::mha_sm100
