// WorkRing: how Work reaches the roles. One lane, the scheduler, computes it ahead of time and leaves
// it in shared memory; every other role reads it there. So no role keeps the state of a scheduler in
// registers, nor waits for a length, and a queue may hand out tiles.
#pragma once

#include <cstdint>
#include <cstring>

#include "arch/warp.hpp"
#include "kernels/common/work.hpp"
#include "pipeline/staged_pipeline.hpp"

namespace pagoda::kernels {

struct WorkRing {
  static constexpr int kStages = 2;
  using Pipeline = pipeline::StagedPipeline<kStages>;
  using Word = arch::Words<4>;
  static constexpr int kWords = (sizeof(Work) + sizeof(Word) - 1) / sizeof(Word);

  arch::SharedArray<Word, kStages * kWords> items;
  arch::MBarrier mbar[Pipeline::num_mbars];

  // By one thread. `readers`: warps of other roles.
  PAGODA_DEVICE void init(uint32_t readers) { Pipeline::init(mbar, 32 * readers, "work"); }
};

// The scheduler's side; one lane.
class WorkWriter {
 public:
  PAGODA_DEVICE explicit WorkWriter(WorkRing& ring)
      : ring_(ring), pipeline_(WorkRing::Pipeline::producer(ring.mbar)) {}

  // Whether write() would not wait.
  [[nodiscard]] PAGODA_DEVICE bool has_room() const {
    return pipeline_.empty(pipeline_.state.index, 0).test_wait(pipeline_.state.phase);
  }
  PAGODA_DEVICE void write(const Work& work) {
    pipeline_.producer_acquire();  // every role has read what was there
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

// A warp of another role:  while (reader.next()) { ... reader.work() ... reader.release(); }
class WorkReader {
 public:
  PAGODA_DEVICE explicit WorkReader(WorkRing& ring)
      : ring_(ring), pipeline_(WorkRing::Pipeline::consumer(ring.mbar)) {}

  // False at the end: what ends the work has no tokens.
  PAGODA_DEVICE bool next() {
    pipeline_.consumer_wait();  // the scheduler has written it
    return work().num_tokens > 0;
  }
  // Whether next() would return at once; the warp agrees.
  [[nodiscard]] PAGODA_DEVICE bool is_ready() const {
    return arch::any(arch::elect_one() != 0 &&
                     pipeline_.full(pipeline_.state.index, 0).test_wait(pipeline_.state.phase));
  }
  // Reads it anew: who needs it twice should not keep it in registers in between.
  [[nodiscard]] PAGODA_DEVICE Work work() const {
    WorkRing::Word words[WorkRing::kWords];
    const int first = static_cast<int>(pipeline_.state.index) * WorkRing::kWords;
    PAGODA_UNROLL
    for (int i = 0; i < WorkRing::kWords; ++i) words[i] = arch::load(ring_.items.at(first + i));
    Work work;
    memcpy(&work, words, sizeof work);
    return work;
  }
  PAGODA_DEVICE void release() {
    pipeline_.consumer_release(1);  // every lane for itself
  }

 private:
  WorkRing& ring_;
  WorkRing::Pipeline pipeline_;
};

}  // namespace pagoda::kernels
