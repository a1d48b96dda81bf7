// What the machine records of a run: spans of waiting and work, asynchronous operations, and flows
// from arrivals to waits. Without a Tracer it records nothing, and the run is the same.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "emulator/machine/hierarchy.hpp"
#include "emulator/machine/scheduler.hpp"
#include "emulator/trace/trace.hpp"

namespace pagoda::emulator {

class TraceRecorder {
 public:
  TraceRecorder(Tracer* tracer, Scheduler& scheduler) : tracer_(tracer), scheduler_(scheduler) {}

  [[nodiscard]] bool is_tracing() const { return tracer_ != nullptr; }
  // One track a warp: its first lane stands for it.
  [[nodiscard]] bool is_tracing(const Thread& thread) const {
    return tracer_ != nullptr && thread.lane() == 0;
  }
  void begin(const Thread& thread, std::string_view name, const char* category);
  void end(const Thread& thread, const char* category = "wait");
  // The acting thread or engine ends a phase of `barrier`, which counts `arrivals`. Returns
  // the flow to its waits.
  uint64_t arrival(const std::string& barrier, uint32_t arrivals);
  void flow_end(const Thread& thread, uint64_t flow);
  // `operation` has completed.
  void operation(const AsyncOperation& operation);

 private:
  Tracer* tracer_;
  Scheduler& scheduler_;
  uint64_t next_flow_ = 0;
};

}  // namespace pagoda::emulator
