// MBarPipeline: a ring of `num_stages` results between two roles, without transaction bytes: scores
// and O in tensor memory, correction factors. Full and empty barriers count arriving threads, or
// one tcgen05.commit.
#pragma once

#include <cstdint>

#include "arch/debug.hpp"
#include "arch/layout/where.hpp"
#include "arch/mbarrier.hpp"
#include "core/target.hpp"
#include "pipeline/pipeline_state.hpp"

namespace pagoda::pipeline {

template <int num_stages_>
struct MBarPipeline {
  static constexpr int num_stages = num_stages_;
  static constexpr int num_mbars = 2 * num_stages;  // full, then empty
  using State = PipelineState<num_stages>;

  arch::MBarrier* mbar;
  State state;

  static PAGODA_DEVICE MBarPipeline producer(arch::MBarrier* mbar) {
    return {mbar, State::producer()};
  }
  static PAGODA_DEVICE MBarPipeline consumer(arch::MBarrier* mbar) {
    return {mbar, State::consumer()};
  }

  // Called by one thread; fence_mbarrier_init and a CTA barrier must follow.
  static PAGODA_DEVICE void init(arch::MBarrier* mbar, uint32_t producers, uint32_t consumers,
                                 const char* name = "mbar",
                                 arch::Where where = arch::Where::current()) {
    for (int i = 0; i < num_stages; ++i) {
      mbar[i].init(producers, where);
      arch::name_barrier(mbar[i], name, "full", i);
      mbar[num_stages + i].init(consumers, where);
      arch::name_barrier(mbar[num_stages + i], name, "empty", i);
    }
  }

  PAGODA_DEVICE arch::MBarrier& producer_mbar() const { return mbar[state.index]; }
  PAGODA_DEVICE arch::MBarrier& consumer_mbar() const { return mbar[num_stages + state.index]; }

  // Waits until the consumers have released the stage (empty barrier).
  PAGODA_DEVICE void producer_acquire(arch::Where where = arch::Where::current()) const {
    consumer_mbar().wait(state.phase, where);
  }
  // Each producer thread arrives on the full barrier after its writes, and steps. A tensor-core
  // producer calls tcgen05_commit(producer_mbar()) and step() instead.
  PAGODA_DEVICE void producer_commit(arch::Where where = arch::Where::current()) {
    producer_mbar().arrive(1, where);
    step();
  }
  // Waits until the producers have committed the stage (full barrier).
  PAGODA_DEVICE void consumer_wait(arch::Where where = arch::Where::current()) const {
    producer_mbar().wait(state.phase, where);
  }
  // Each consumer thread arrives on the empty barrier after its reads, and steps.
  PAGODA_DEVICE void consumer_release(arch::Where where = arch::Where::current()) {
    consumer_mbar().arrive(1, where);
    step();
  }
  PAGODA_DEVICE void step() { state.step(); }
};

}  // namespace pagoda::pipeline
