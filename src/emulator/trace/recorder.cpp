// Events of a run.
#include "emulator/trace/recorder.hpp"

#include "emulator/report/place.hpp"

namespace pagoda::emulator {

void TraceRecorder::begin(const Thread& thread, std::string_view name, const char* category) {
  if (!is_tracing(thread)) return;
  tracer_->record({.kind = TraceEvent::Kind::kBegin,
                   .step = scheduler_.next_step(),
                   .cta = thread.cta->index,
                   .warp = static_cast<uint32_t>(thread.warp()),
                   .name = std::string(name),
                   .category = category,
                   .role = thread.role,
                   .source = {},
                   .details = {}});
}

void TraceRecorder::end(const Thread& thread, const char* category) {
  if (!is_tracing(thread)) return;
  tracer_->record({.kind = TraceEvent::Kind::kEnd,
                   .step = scheduler_.next_step(),
                   .cta = thread.cta->index,
                   .warp = static_cast<uint32_t>(thread.warp()),
                   .name = {},
                   .category = category,
                   .role = thread.role,
                   .source = {},
                   .details = {}});
}

uint64_t TraceRecorder::arrival(const std::string& barrier, uint32_t arrivals) {
  if (tracer_ == nullptr) return 0;
  const AsyncOperation* const operation = scheduler_.completing();
  const Thread* const thread = scheduler_.acting();
  if (thread == nullptr) return 0;
  tracer_->record({.kind = TraceEvent::Kind::kFlowStart,
                   .step = scheduler_.next_step(),
                   .cta = thread->cta->index,
                   .warp = static_cast<uint32_t>(thread->warp()),
                   .name = barrier,
                   .category = "arrive",
                   .role = thread->role,
                   .flow = ++next_flow_,
                   .operation = operation != nullptr ? operation->issued_step : uint64_t{0},
                   .source = {},
                   .details = std::to_string(arrivals) + " arrivals"});
  scheduler_.next_step();  // the arrival is a span of one step
  return next_flow_;
}

void TraceRecorder::flow_end(const Thread& thread, uint64_t flow) {
  if (!is_tracing(thread) || flow == 0) return;
  tracer_->record({.kind = TraceEvent::Kind::kFlowEnd,
                   .step = scheduler_.next_step(),
                   .cta = thread.cta->index,
                   .warp = static_cast<uint32_t>(thread.warp()),
                   .name = {},
                   .category = {},
                   .role = thread.role,
                   .flow = flow,
                   .source = {},
                   .details = {}});
}

void TraceRecorder::operation(const AsyncOperation& operation) {
  if (tracer_ == nullptr) return;
  tracer_->record({.kind = TraceEvent::Kind::kOperation,
                   .step = scheduler_.next_step(),
                   .cta = operation.cta->index,
                   .warp = static_cast<uint32_t>(operation.issuer->warp()),
                   .name = operation.primitive,
                   .category = "async",
                   .role = operation.issuer->last_role,
                   .operation = operation.issued_step,
                   .source = line_of(operation.where),
                   .details = operation.details});
}

}  // namespace pagoda::emulator
