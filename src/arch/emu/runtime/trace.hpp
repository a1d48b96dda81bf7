// What happened in which order: spans of waiting and of work on the track of each role, and the
// flows from an arrival to the wait that it ended. Order and overlap, not time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pagoda::emulator {

struct TraceEvent {
  enum class Kind : uint8_t { kBegin, kEnd, kInstant, kFlowStart, kFlowEnd };
  Kind kind;
  uint64_t step;  // the emulator's count of events
  uint32_t cta;
  uint32_t warp;  // kEngine: the asynchronous engines of the CTA
  std::string name;
  std::string category;  // "wait", "work", "async", "arrive"
  std::string role;
  uint64_t flow = 0;  // joins a kFlowStart and its kFlowEnd

  static constexpr uint32_t kEngine = 1000;
};

class Tracer {
 public:
  void record(TraceEvent event) { events_.push_back(std::move(event)); }
  [[nodiscard]] const std::vector<TraceEvent>& events() const { return events_; }
  // Chrome's trace event format, which Perfetto opens.
  [[nodiscard]] std::string to_chrome_json() const;

 private:
  std::vector<TraceEvent> events_;
};

}  // namespace pagoda::emulator
