// The asynchronous engines: which operations are in flight, and which of them completes next. What
// an operation does is its own `run`: copies, products, commits, remote arrivals.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "emulator/async/operation.hpp"
#include "emulator/machine/hierarchy.hpp"
#include "emulator/machine/launch_shape.hpp"
#include "emulator/machine/scheduler.hpp"
#include "emulator/report/reporter.hpp"
#include "emulator/trace/recorder.hpp"

namespace pagoda::emulator {

class AsyncEngines {
 public:
  AsyncEngines(const LaunchShape& shape, Scheduler& scheduler, Reporter& reporter,
               TraceRecorder& trace)
      : shape_(shape), scheduler_(scheduler), reporter_(reporter), trace_(trace) {}

  // --- by threads ---
  // An operation of `issuer` with an agent of its own: a slot of its CTA.
  std::unique_ptr<AsyncOperation> make_operation(const char* primitive, const Where& where,
                                                 Thread& issuer,
                                                 std::function<void(AsyncOperation&)> run);
  // Issues. `queue` nullptr: unordered with all others.
  void submit(std::unique_ptr<AsyncOperation> operation, AsyncQueue* queue = nullptr);
  // Two operations of which the second starts when the first is complete.
  void submit_in_order(std::unique_ptr<AsyncOperation> first,
                       std::unique_ptr<AsyncOperation> second);
  void finish(AsyncQueue& queue);  // completes all operations of the queue, now
  // The agent of a warp's share of all wgmma of its warpgroup, which complete in order.
  [[nodiscard]] Agent wgmma_agent(const Cta& cta, int warp) const {
    return make_agent(cta.index, shape_.first_engine() + static_cast<uint32_t>(warp));
  }
  void count_multiply_adds(uint64_t count) { multiply_adds_ += count; }

  // --- by the machine's loop ---
  [[nodiscard]] bool has_ready() const { return !ready_.empty(); }
  bool complete_one();  // by mode and seed; false: none is in flight
  // Reports operations of an ended cluster that no thread has waited for.
  void report_end(const Cta& cta);

  [[nodiscard]] uint64_t operations() const { return operations_; }
  [[nodiscard]] uint64_t multiply_adds() const { return multiply_adds_; }

 private:
  void complete(AsyncQueue& queue);  // its first operation
  AsyncQueue& make_queue();
  // The slot of an operation in its CTA; negative: its agent is an engine's.
  [[nodiscard]] int64_t slot_of(const AsyncOperation& operation) const {
    return static_cast<int64_t>(agent_index(operation.agent)) - shape_.first_slot();
  }

  const LaunchShape& shape_;
  Scheduler& scheduler_;
  Reporter& reporter_;
  TraceRecorder& trace_;
  std::vector<AsyncQueue*> ready_;  // queues with operations
  std::unordered_map<AsyncQueue*, std::unique_ptr<AsyncQueue>> own_queues_;  // of unordered ones
  uint64_t operations_ = 0;
  uint64_t multiply_adds_ = 0;
};

}  // namespace pagoda::emulator
