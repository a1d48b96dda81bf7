// What happened in which order: spans of waiting and of work on the track of each warp, spans of
// asynchronous operations on tracks of their engines, and flows from the arrival that ends a phase
// to the waits that it ends. Order and overlap, not time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pagoda::emulator {

struct TraceEvent {
  enum class Kind : uint8_t {
    kBegin,      // of a span; spans of a warp nest
    kEnd,        // of the innermost open span of the category
    kOperation,  // a whole asynchronous operation, from its issue to its completion
    kFlowStart,  // an arrival that ended a phase, by the warp or by `operation`
    kFlowEnd,    // a wait that this ended
  };
  Kind kind;
  uint64_t step = 0;  // the emulator's count of events; for an operation, of its completion
  uint32_t cta = 0;
  uint32_t warp = 0;
  std::string name;
  std::string category;    // "role", "wait", "work", "async", "arrive"
  std::string role;        // of the warp, or of the issuer
  uint64_t flow = 0;       // joins a kFlowStart and its kFlowEnd
  uint64_t operation = 0;  // the step of its issue, which names it; 0: none
  std::string source;      // of an operation: file and line
  std::string details;     // AsyncOperation::details; of an arrival: the count of the phase
};

class Tracer {
 public:
  void record(TraceEvent event) { events_.push_back(std::move(event)); }
  [[nodiscard]] const std::vector<TraceEvent>& events() const { return events_; }
  // Chrome's trace event format, which Perfetto opens: a process is a CTA, a thread a warp or an
  // engine, a microsecond one step. The text depends on the events alone.
  [[nodiscard]] std::string to_chrome_json() const;

 private:
  std::vector<TraceEvent> events_;
};

}  // namespace pagoda::emulator
