// The loop of a run: starts clusters, runs threads and completes operations in the order that the
// mode chooses, and checks each thread and CTA at its end.
#include "emulator/machine/machine.hpp"

#include <chrono>
#include <string>
#include <utility>

#include "emulator/async/copies.hpp"
#include "emulator/async/wgmma.hpp"
#include "emulator/memory/register_file.hpp"
#include "emulator/memory/tensor_memory.hpp"
#include "emulator/sync/deadlock.hpp"

namespace pagoda::emulator {
namespace {

constexpr size_t kLdsBytes = 64 << 10;  // of a CTA on gfx942

thread_local Machine* current_machine = nullptr;

}  // namespace

Machine::Machine(LaunchShape shape, std::vector<GlobalBuffer> buffers, Options options,
                 std::function<void()> kernel)
    : shape_(std::move(shape)),
      options_(options),
      kernel_(std::move(kernel)),
      scheduler_(options_.mode, options_.seed),
      reporter_(shape_.kernel, options_, scheduler_),
      trace_(options_.tracer, scheduler_),
      mutations_(shape_, options_, scheduler_, reporter_),
      grid_(shape_),
      scopes_(shape_.ctas_per_cluster()),
      memory_(std::move(buffers), grid_, scheduler_, reporter_, scopes_),
      mbarriers_(memory_, scheduler_, reporter_, trace_),
      collectives_(shape_.threads, scheduler_, reporter_),
      engines_(shape_, scheduler_, reporter_, trace_) {}

Machine::~Machine() {
  // Unwinding a fiber may run destructors of the kernel, which ask for the machine.
  Machine* const previous = std::exchange(current_machine, this);
  scheduler_.end_run();
  grid_.clear();
  current_machine = previous;
}

Machine& Machine::current() { return *current_machine; }
Thread& Machine::current_thread() { return *current_machine->scheduler_.running(); }

Result Machine::run() {
  Machine* const previous = std::exchange(current_machine, this);
  const auto start = std::chrono::steady_clock::now();
  if (shape_.grid.x % shape_.cluster_size != 0) {
    reporter_.report(ReportKind::kProtocol, "launch", Where::current(),
                     "grid.x = " + std::to_string(shape_.grid.x) +
                         " is not a multiple of the cluster's " +
                         std::to_string(shape_.cluster_size) + " CTAs");
  } else if (shape_.is_amd() && shape_.shared_bytes > kLdsBytes) {
    reporter_.report(ReportKind::kBounds, "launch", Where::current(),
                     std::to_string(shape_.shared_bytes) + " bytes of shared memory; gfx942 has " +
                         std::to_string(kLdsBytes));
  } else {
    try {
      loop();
    } catch (const RunOver&) {
    }
  }
  Result result{.reports = reporter_.take(), .statistics = {}};
  result.statistics = {
      .steps = scheduler_.steps(),
      .switches = scheduler_.switches(),
      .accesses = memory_.accesses(),
      .async_operations = engines_.operations(),
      .multiply_adds = engines_.multiply_adds(),
      .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  current_machine = previous;
  return result;
}

void Machine::loop() {
  while (!scheduler_.is_over()) {
    grid_.remove_ended([&](const Cta& cta) { scopes_.forget(cta); });
    grid_.start_clusters(options_.resident_clusters, kernel_,
                         [&](Thread& thread) { scheduler_.start(thread); });
    if (grid_.resident().empty()) return;

    if (scheduler_.is_async_turn() && engines_.complete_one()) continue;
    Thread* thread = scheduler_.next_thread(engines_.has_ready());
    if (thread == nullptr && engines_.complete_one()) continue;
    if (thread == nullptr) thread = scheduler_.next_idle_poll();
    if (thread == nullptr) return report_deadlock();
    if (scheduler_.resume(*thread)) end_thread(*thread);
  }
}

void Machine::report_deadlock() {
  std::optional<Deadlock> deadlock = describe_deadlock(grid_.resident());
  if (!deadlock) return;
  const Waiting& waiting = deadlock->first_waiting->waiting;
  reporter_.report(ReportKind::kDeadlock, waiting.primitive, waiting.where,
                   std::move(deadlock->message), deadlock->first_waiting);
  scheduler_.end_run();
}

// --- the end of threads and CTAs ---------------------------------------------------------------

void Machine::end_thread(Thread& thread) {
  thread.state = ThreadState::kDone;
  if (const char* copies = copies_in_flight(thread)) {
    reporter_.report(ReportKind::kProtocol, "exit", thread.waiting.where,
                     std::string("the thread ended with ") + copies, &thread);
  }
  wgmma_end_thread(thread);
  if (--thread.cta->running == 0) end_cta(*thread.cta);
}

void Machine::end_cta(Cta& cta) {
  register_budget_end_cta(reporter_, cta);
  Cluster& cluster = *cta.cluster;
  if (--cluster.running > 0) return;
  // Shared memory of the cluster is free for another: no operation may still write there.
  for (const auto& member : cluster.ctas) {
    if (member->tensor_memory) member->tensor_memory->report_end(reporter_);
    mbarriers_.report_end(*member);
    engines_.report_end(*member);
  }
}

}  // namespace pagoda::emulator
