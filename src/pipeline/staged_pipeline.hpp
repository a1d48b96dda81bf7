// StagedPipeline: a ring of stages between one producer and its consumers. A stage has
// num_qk_stages parts with their own barriers, so that a product can start on the first part of a
// tile.
//
//   barriers [num_kv_stages][num_qk_stages] full   1 arrival + bytes (TMA), or `producers` arrivals
//            [num_kv_stages][num_qk_stages] empty  `consumers` arrivals, or one tcgen05.commit
//
// Each role has its own object, made by producer() or consumer(): the barriers' address and two
// registers of state.
#pragma once

#include <cstdint>
#include <utility>

#include "arch/debug.hpp"
#include "arch/layout/where.hpp"
#include "arch/mbarrier.hpp"
#include "core/target.hpp"
#include "pipeline/pipeline_state.hpp"

namespace pagoda::pipeline {

// How a consumer releases a part, and how the producer waits for the release.
struct ThreadRelease {
  // The threads whose predicate is not 0 arrive, as many as the barrier counts. The arrival orders
  // their loads, and products that they waited for (wgmma_wait_group), before the next copies.
  static PAGODA_DEVICE void release(arch::MBarrier& empty, int32_t predicate, arch::Where where) {
    empty.arrive_if(predicate, where);
  }
  static PAGODA_DEVICE void wait(arch::MBarrier& empty, uint32_t parity, arch::Where where) {
    empty.wait(parity, where);
  }
};

template <int num_kv_stages_, int num_qk_stages_ = 1, class Release = ThreadRelease>
struct StagedPipeline {
  static constexpr int num_kv_stages = num_kv_stages_;
  static constexpr int num_qk_stages = num_qk_stages_;
  static constexpr int num_mbars = 2 * num_kv_stages * num_qk_stages;  // what `mbar` points to
  using State = PipelineState<num_kv_stages>;

  arch::MBarrier* mbar;
  State state;

  static PAGODA_DEVICE StagedPipeline producer(arch::MBarrier* mbar) {
    return {mbar, State::producer()};
  }
  static PAGODA_DEVICE StagedPipeline consumer(arch::MBarrier* mbar) {
    return {mbar, State::consumer()};
  }

  // Called by one thread of the CTA; fence_mbarrier_init and a CTA barrier must follow.
  // `consumers`: arrivals that release a part of a stage; `producers`: arrivals that fill it.
  static PAGODA_DEVICE void init(arch::MBarrier* mbar, uint32_t consumers, const char* name = "kv",
                                 arch::Where where = arch::Where::current(),
                                 uint32_t producers = 1) {
    for (int i = 0; i < num_mbars; ++i) {
      const bool is_full = i < num_mbars / 2;
      mbar[i].init(is_full ? producers : consumers, where);
      arch::name_barrier(mbar[i], name, is_full ? "full" : "empty", i % (num_mbars / 2));
    }
  }

  PAGODA_DEVICE arch::MBarrier& full(uint32_t index, int qk_stage) const {
    return mbar[index * num_qk_stages + static_cast<uint32_t>(qk_stage)];
  }
  PAGODA_DEVICE arch::MBarrier& empty(uint32_t index, int qk_stage) const {
    return mbar[num_mbars / 2 + index * num_qk_stages + static_cast<uint32_t>(qk_stage)];
  }

  // --- producer ---
  template <int qk_stage = 0>
  PAGODA_DEVICE arch::MBarrier& producer_mbar() const {
    static_assert(qk_stage >= 0 && qk_stage < num_qk_stages, "no such part of a stage");
    return full(state.index, qk_stage);
  }
  // Waits until the consumers have released this part of the stage (empty barrier).
  template <int qk_stage = 0>
  PAGODA_DEVICE void producer_acquire(arch::Where where = arch::Where::current()) const {
    static_assert(qk_stage >= 0 && qk_stage < num_qk_stages, "no such part of a stage");
    Release::wait(empty(state.index, qk_stage), state.phase, where);
  }

  // After the last tile: waits until the consumers have released every stage. The ring's memory may
  // then be reused, and a CTA of a cluster may end.
  PAGODA_DEVICE void producer_drain(arch::Where where = arch::Where::current()) {
    for (int stage = 0; stage < num_kv_stages; ++stage) {
      for (int qk_stage = 0; qk_stage < num_qk_stages; ++qk_stage) {
        Release::wait(empty(state.index, qk_stage), state.phase, where);
      }
      step();
    }
  }

  // --- consumer ---
  // Waits until this part of the stage is full: its bytes and arrivals are complete.
  template <int qk_stage = 0>
  PAGODA_DEVICE void consumer_wait(arch::Where where = arch::Where::current()) const {
    static_assert(qk_stage >= 0 && qk_stage < num_qk_stages, "no such part of a stage");
    full(state.index, qk_stage).wait(state.phase, where);
  }
  // Releases a part of the current stage; after the last part, steps to the next stage.
  template <int qk_stage = num_qk_stages - 1>
  PAGODA_DEVICE void consumer_release(int32_t predicate,
                                      arch::Where where = arch::Where::current()) {
    consumer_release_at<qk_stage>(state.index, predicate, where);
    if constexpr (qk_stage == num_qk_stages - 1) step();
  }
  // Releases a part of stage `index`, without a step.
  template <int qk_stage = num_qk_stages - 1>
  PAGODA_DEVICE void consumer_release_at(uint32_t index, int32_t predicate,
                                         arch::Where where = arch::Where::current()) const {
    static_assert(qk_stage >= 0 && qk_stage < num_qk_stages, "no such part of a stage");
    Release::release(empty(index, qk_stage), predicate, where);
  }

  PAGODA_DEVICE void step() { state.step(); }
};

// Calls f.operator()<part>() for every part of a stage.
template <int num_parts, class F>
PAGODA_DEVICE void for_each_part(const F& f) {
  [&f]<int... part>(std::integer_sequence<int, part...>) { (f.template operator()<part>(), ...); }
  (std::make_integer_sequence<int, num_parts>{});
}

// The name that the documentation of KVConsumerPipeline uses.
template <int num_kv_stages, int num_mma_stages, class Release = ThreadRelease>
using KVPipeline = StagedPipeline<num_kv_stages, num_mma_stages, Release>;

}  // namespace pagoda::pipeline
