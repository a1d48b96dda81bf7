// The table of a deadlock: every barrier that a thread waits for with its arrivals, every wait, and
// the threads that have ended.
#include "emulator/sync/deadlock.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "emulator/report/place.hpp"

namespace pagoda::emulator {
namespace {

std::string count_of(uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string describe(const Waiting& waiting) {
  if (waiting.barrier == nullptr) return waiting.what + waiting.which;
  return "mbarrier " + waiting.barrier->name + ", phase " + std::to_string(waiting.phase);
}

// What the phase of the barrier still expects, and its arrivals in this phase or before.
std::string describe(const MBarrierState& barrier) {
  std::string text =
      "mbarrier " + barrier.name + ": phase " + std::to_string(barrier.phase) + ", still wants " +
      std::to_string(barrier.pending) + " of " + std::to_string(barrier.expected) +
      " arrivals and " +
      count_of(static_cast<uint64_t>(std::max<int64_t>(barrier.pending_bytes, 0)), "byte") + "\n";
  if (barrier.arrivals.empty()) text += "      nobody has ever arrived there\n";
  for (const Arrivals& from : barrier.arrivals) {
    text += "      ";
    text +=
        from.last_phase == barrier.phase
            ? count_of(from.count_in_phase, from.is_engine ? "byte" : "arrival") + " in this phase"
            : "last in phase " + std::to_string(from.last_phase);
    text += " by " + call_at(from.primitive, from.where);
    if (*from.role != '\0') text += " (" + std::string(from.role) + ")";
    text += "\n";
  }
  return text;
}

std::string describe_barriers(const Cta& cta) {
  const std::string who = "  CTA " + std::to_string(cta.index) + " ";
  std::string table;
  std::map<uint32_t, const MBarrierState*> by_offset;
  for (const auto& [offset, barrier] : cta.mbarriers.all()) {
    if (!barrier.waiters.empty()) by_offset[offset] = &barrier;
  }
  for (const Thread& thread : cta.threads) {  // those that are polled
    if (thread.state != ThreadState::kPolling || thread.waiting.barrier == nullptr) continue;
    for (const auto& [offset, barrier] : cta.mbarriers.all()) {
      if (&barrier == thread.waiting.barrier) by_offset[offset] = &barrier;
    }
  }
  for (const auto& [offset, barrier] : by_offset) table += who + describe(*barrier);
  for (size_t id = 0; id < cta.named_barriers.size(); ++id) {
    const NamedBarrierState& barrier = cta.named_barriers[id];
    if (barrier.waiters.empty()) continue;
    table += who + "named barrier " + std::to_string(id) +
             (barrier.name != nullptr ? std::string(" ") + barrier.name : "") + ": " +
             std::to_string(barrier.arrived) + " of " + std::to_string(barrier.expected) +
             " threads have arrived\n";
  }
  if (!cta.register_waiters.empty()) {
    table += who + "registers: " + std::to_string(cta.free_registers) + " are free\n";
  }
  return table;
}

// Threads in one state, neighbours in one line: "CTA 0 threads 32..63 (consumer)".
template <class Same, class Describe>
std::string describe_runs(const Cta& cta, Same is_same, Describe describe_one) {
  std::string table;
  const std::vector<Thread>& threads = cta.threads;
  for (size_t first = 0, end = 0; first < threads.size(); first = end) {
    end = first + 1;
    const std::string text = describe_one(threads[first]);
    if (text.empty()) continue;
    while (end < threads.size() && is_same(threads[first], threads[end])) ++end;
    table += "  CTA " + std::to_string(cta.index) + " thread";
    table += end - first == 1 ? " " + std::to_string(first)
                              : "s " + std::to_string(first) + ".." + std::to_string(end - 1);
    const char* const role = threads[first].last_role;
    if (*role != '\0') table += std::string(" (") + role + ")";
    table += text + "\n";
  }
  return table;
}

bool is_waiting(const Thread& thread) {
  return thread.state == ThreadState::kBlocked || thread.state == ThreadState::kPolling;
}

std::string describe_waits(const Cta& cta) {
  return describe_runs(
      cta,
      [](const Thread& a, const Thread& b) {
        return a.state == b.state && a.waiting.barrier == b.waiting.barrier &&
               a.waiting.phase == b.waiting.phase &&
               std::string_view(a.waiting.what) == b.waiting.what &&
               a.waiting.which == b.waiting.which &&
               a.waiting.where.line() == b.waiting.where.line() &&
               std::string_view(a.last_role) == b.last_role;
      },
      [](const Thread& thread) -> std::string {
        if (!is_waiting(thread)) return {};
        return (thread.state == ThreadState::kPolling ? " poll " : " wait for ") +
               describe(thread.waiting) + " in " +
               call_at(thread.waiting.primitive, thread.waiting.where);
      });
}

std::string describe_ended(const Cta& cta) {
  return describe_runs(
      cta,
      [](const Thread& a, const Thread& b) {
        return a.state == b.state && std::string_view(a.last_role) == b.last_role;
      },
      [](const Thread& thread) -> std::string {
        return thread.state == ThreadState::kDone ? " ended" : "";
      });
}

}  // namespace

std::optional<Deadlock> describe_deadlock(const std::vector<std::unique_ptr<Cluster>>& clusters) {
  std::string table;
  std::string waits;
  std::string ended;
  const Thread* first_waiting = nullptr;
  bool polls = false;
  for (const auto& cluster : clusters) {
    for (const auto& cta : cluster->ctas) {
      table += describe_barriers(*cta);
      waits += describe_waits(*cta);
      ended += describe_ended(*cta);
      for (const Thread& thread : cta->threads) {
        if (first_waiting == nullptr && is_waiting(thread)) first_waiting = &thread;
        polls = polls || thread.state == ThreadState::kPolling;
      }
    }
    if (!cluster->waiters.empty()) {
      table += "  cluster barrier: " + std::to_string(cluster->arrived) + " threads have arrived\n";
    }
  }
  if (first_waiting == nullptr) return std::nullopt;
  std::string message =
      polls ? "threads poll, and nothing can change any more\n" : "nothing can run any more\n";
  message += table + waits + ended;
  message.pop_back();
  return Deadlock{first_waiting, std::move(message)};
}

}  // namespace pagoda::emulator
