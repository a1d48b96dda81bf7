// A ring of `num_stages` results between two roles without bytes in shared memory: the scores and
// the outputs in tensor memory, the correction factors. Both sides count threads, or one commit.
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

  // By one thread; then fence_mbarrier_init and a barrier.
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

  // The consumers have read what this stage held.
  PAGODA_DEVICE void producer_acquire(arch::Where where = arch::Where::current()) const {
    consumer_mbar().wait(state.phase, where);
  }
  // By each of the producers, after its writes. A tensor-core producer commits to producer_mbar()
  // instead, then steps.
  PAGODA_DEVICE void producer_commit(arch::Where where = arch::Where::current()) {
    producer_mbar().arrive(1, where);
    step();
  }
  // The producers have written this stage.
  PAGODA_DEVICE void consumer_wait(arch::Where where = arch::Where::current()) const {
    producer_mbar().wait(state.phase, where);
  }
  // By each of the consumers, after its reads.
  PAGODA_DEVICE void consumer_release(arch::Where where = arch::Where::current()) {
    consumer_mbar().arrive(1, where);
    step();
  }
  PAGODA_DEVICE void step() { state.step(); }
};

}  // namespace pagoda::pipeline
