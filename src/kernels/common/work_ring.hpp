// WorkRing: a ring in shared memory through which the scheduler lane of a CTA passes work tiles to
// all other roles. So only one lane keeps scheduler state in registers and waits for lengths from
// global memory, at most two work tiles ahead, and it may draw them from an atomic counter.
//
//   full [stage]    1 arrival:  the scheduler lane, when the item is stored
//   empty [stage]   32 arrivals a reading warp:  every lane, when it has loaded the item
#pragma once

#include <cstdint>
#include <cstring>

#include "arch/warp.hpp"
#include "kernels/common/work_tile.hpp"
#include "pipeline/staged_pipeline.hpp"

namespace pagoda::kernels {

struct WorkRing {
  static constexpr int kStages = 2;
  using Pipeline = pipeline::StagedPipeline<kStages>;
  using Word = arch::Words<4>;
  static constexpr int kWords = (sizeof(Work) + sizeof(Word) - 1) / sizeof(Word);

  arch::SharedArray<Word, kStages * kWords> items;
  arch::MBarrier mbar[Pipeline::num_mbars];

  // One thread calls it. `readers`: warps that read every item.
  PAGODA_DEVICE void init(uint32_t readers) { Pipeline::init(mbar, 32 * readers, "work"); }
};

// The scheduler's side: one lane.
class WorkWriter {
 public:
  PAGODA_DEVICE explicit WorkWriter(WorkRing& ring)
      : ring_(ring), pipeline_(WorkRing::Pipeline::producer(ring.mbar)) {}

  // Whether write() would return without waiting.
  [[nodiscard]] PAGODA_DEVICE bool has_room() const {
    return pipeline_.empty(pipeline_.state.index, 0).test_wait(pipeline_.state.phase);
  }
  // The stage that the next write() takes.
  [[nodiscard]] PAGODA_DEVICE uint32_t stage() const { return pipeline_.state.index; }
  PAGODA_DEVICE void write(const Work& work) {
    pipeline_.producer_acquire();  // every reading warp has released the stage's previous item
    WorkRing::Word words[WorkRing::kWords] = {};
    memcpy(words, &work, sizeof work);
    const int first = static_cast<int>(pipeline_.state.index) * WorkRing::kWords;
    PAGODA_UNROLL
    for (int i = 0; i < WorkRing::kWords; ++i) arch::store(ring_.items.at(first + i), words[i]);
    pipeline_.producer_mbar().arrive();
    pipeline_.step();
  }

 private:
  WorkRing& ring_;
  WorkRing::Pipeline pipeline_;
};

// A reading warp:  while (reader.next()) { ... reader.work() ... reader.release(); }
class WorkReader {
 public:
  PAGODA_DEVICE explicit WorkReader(WorkRing& ring) : ring_(ring) {}

  // False: the item has no tokens, which ends the work.
  PAGODA_DEVICE bool next() {
    pipeline().consumer_wait();  // the scheduler lane has stored the item
    return work().num_tokens > 0;
  }
  // Whether next() would return without waiting; the same in all lanes.
  [[nodiscard]] PAGODA_DEVICE bool is_ready() const {
    const WorkRing::Pipeline ring = pipeline();
    return arch::any(arch::elect_one() != 0 &&
                     ring.full(ring.state.index, 0).test_wait(ring.state.phase));
  }
  // Loads the item from shared memory at every call. A role calls it again after its mainloop
  // instead of keeping the item in registers.
  [[nodiscard]] PAGODA_DEVICE Work work() const {
    WorkRing::Word words[WorkRing::kWords];
    const int first = static_cast<int>(pipeline().state.index) * WorkRing::kWords;
    PAGODA_UNROLL
    for (int i = 0; i < WorkRing::kWords; ++i) words[i] = arch::load(ring_.items.at(first + i));
    Work work;
    memcpy(&work, words, sizeof work);
    return work;
  }
  // Every lane arrives: each has loaded the item by itself.
  PAGODA_DEVICE void release() {
    pipeline().consumer_release(1);
    ++num_released_;
  }

 private:
  // Made of the one register that the mainloops have for it.
  [[nodiscard]] PAGODA_DEVICE WorkRing::Pipeline pipeline() const {
    static_assert(WorkRing::kStages == 2);
    return {ring_.mbar, {num_released_ & 1U, num_released_ >> 1U & 1U}};
  }

  WorkRing& ring_;
  uint32_t num_released_ = 0;
};

}  // namespace pagoda::kernels
