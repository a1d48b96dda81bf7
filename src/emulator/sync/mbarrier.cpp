// Arrivals at mbarriers, and waits for their phases.
#include "emulator/sync/mbarrier.hpp"

#include <string>
#include <utility>

#include "emulator/machine/machine.hpp"
#include "emulator/memory/tensor_memory.hpp"
#include "emulator/sync/barriers.hpp"

namespace pagoda::emulator {

MBarrierState& MBarriers::find(const void* address, const char* primitive, const Where& where) {
  if (reinterpret_cast<uintptr_t>(address) % 8 != 0) {
    reporter_.fail(ReportKind::kBounds, primitive, where, "an mbarrier is not aligned to 8 bytes");
  }
  Cta* const cta = memory_.find_cta(address);
  if (cta == nullptr) {
    reporter_.fail(ReportKind::kBounds, primitive, where,
                   "an mbarrier lies outside of shared memory");
  }
  if (cta->running == 0) {
    reporter_.fail(ReportKind::kProtocol, primitive, where,
                   "use of an mbarrier of CTA " + std::to_string(cta->index) + ", which has ended");
  }
  MBarrierState* const barrier = cta->mbarriers.find_live(cta->offset_of(address));
  if (barrier == nullptr) {
    reporter_.fail(ReportKind::kProtocol, primitive, where,
                   "use of an mbarrier that was not initialised, at " +
                       describe_shared(*cta, cta->offset_of(address)));
  }
  const Thread* const thread = scheduler_.running();
  const auto is_after_cluster_barrier = [&] {
    return thread->cta->cluster == cta->cluster && barrier->init_cluster_phase &&
           thread->cluster_waits > *barrier->init_cluster_phase;
  };
  if (thread != nullptr && !thread->access(primitive, where).is_after(barrier->init, true) &&
      !is_after_cluster_barrier()) {
    reporter_.report(ReportKind::kRace, primitive, where,
                     "use of mbarrier " + barrier->name +
                         " is not ordered after its initialisation\n  a barrier of the CTA (or "
                         "cluster) is missing after init");
  }
  return *barrier;
}

MBarrierState& MBarriers::find_for_copy(const void* address, const char* primitive,
                                        const Where& where) {
  MBarrierState& barrier = find(address, primitive, where);
  if (!barrier.is_fenced) {
    reporter_.report(ReportKind::kProtocol, primitive, where,
                     "the copy engine may not see the initialisation of mbarrier " + barrier.name +
                         "\n  fence_mbarrier_init is missing after init");
  }
  return barrier;
}

void* MBarriers::beside(const void* address) const {
  const Cta* const cta = memory_.find_cta(address);
  if (cta == nullptr) return nullptr;
  const int64_t offset = cta->mbarriers.neighbour(cta->offset_of(address));
  return offset >= 0 ? cta->shared + offset : nullptr;
}

void MBarriers::count_arrival(MBarrierState& barrier, uint64_t count, const char* primitive,
                              const Where& where, bool is_engine) {
  const Thread* const thread = scheduler_.acting();
  barrier.count_arrival(count, thread != nullptr ? thread->role : "", primitive, where, is_engine);
}

void MBarriers::end_phase_if_complete(MBarrierState& barrier) {
  if (!barrier.is_complete()) return;
  barrier.start_next_phase();
  barrier.last_flow = trace_.arrival(barrier.name, barrier.expected);
  for (Thread* waiter : std::exchange(barrier.waiters, {})) scheduler_.wake(*waiter);
}

void MBarriers::arrive(MBarrierState& barrier, uint32_t count, const Released& released) {
  const char* const primitive = released.primitive;
  const Where& where = released.where;
  if (barrier.pending < static_cast<int64_t>(count)) {
    reporter_.fail(ReportKind::kProtocol, primitive, where,
                   "mbarrier " + barrier.name + " gets " + std::to_string(count) +
                       " arrivals where its phase " + std::to_string(barrier.phase) +
                       " wants only " + std::to_string(barrier.pending) + " more of " +
                       std::to_string(barrier.expected));
  }
  scheduler_.progress();
  count_arrival(barrier, count, primitive, where, false);
  if (released.cta == barrier.cta) {
    barrier.gathering.join(released.clocks);
  } else {
    Scopes::release_to(barrier.gathering_from_others, released);
  }
  barrier.pending -= count;
  end_phase_if_complete(barrier);
}

void MBarriers::complete_bytes(MBarrierState& barrier, int64_t bytes, const AsyncOperation& copy,
                               bool is_store) {
  scheduler_.progress();
  count_arrival(barrier, static_cast<uint64_t>(bytes), copy.primitive, copy.where, true);
  if (is_store && copy.cta->index != barrier.cta) {
    Scopes::release_to(
        barrier.gathering_from_others,
        {copy.completion(), copy.cta->index, Scope::kCluster, copy.primitive, copy.where});
  } else {
    barrier.gathering.join(copy.completion());
  }
  barrier.pending_bytes -= bytes;
  if (!barrier.is_live) {
    reporter_.fail(ReportKind::kProtocol, copy.primitive, copy.where,
                   "the copy ends after its mbarrier " + barrier.name + " was invalidated");
  }
  if (barrier.pending == 0 && barrier.pending_bytes < 0) {
    reporter_.fail(ReportKind::kProtocol, copy.primitive, copy.where,
                   "mbarrier " + barrier.name + " gets " + std::to_string(-barrier.pending_bytes) +
                       " bytes more than its phase " + std::to_string(barrier.phase) + " expects");
  }
  end_phase_if_complete(barrier);
}

void MBarriers::report_end(const Cta& cta) {
  for (const auto& [offset, barrier] : cta.mbarriers.all()) {
    if (barrier.pending_bytes == 0) continue;
    reporter_.report(ReportKind::kProtocol, barrier.init.primitive, barrier.init.where,
                     "the CTA ended while mbarrier " + barrier.name + " counts " +
                         std::to_string(barrier.pending_bytes) + " pending bytes",
                     cta.threads.data());
  }
}

// --- instructions --------------------------------------------------------------------------------

void mbarrier_init(void* address, uint32_t arrivals, const Where& where) {
  Machine& machine = Machine::current();
  Thread& thread = Machine::current_thread();
  const Mutation mutation = machine.mutations().at(
      "mbarrier_init", where,
      Mutation::kDrop | Mutation::kMore | (arrivals > 1 ? Mutation::kFewer : Mutation::kNone));
  if (mutation == Mutation::kDrop) return;
  if (mutation == Mutation::kMore) ++arrivals;
  if (mutation == Mutation::kFewer) --arrivals;
  machine.memory().thread_shared(address, 8, true, "mbarrier_init", where);
  constexpr uint32_t kMaxArrivals = (1U << 20) - 1;  // PTX ISA, mbarrier.init
  if (arrivals == 0 || arrivals > kMaxArrivals) {
    machine.reporter().fail(ReportKind::kProtocol, "mbarrier_init", where,
                            "arrival count " + std::to_string(arrivals) + " is not in 1.." +
                                std::to_string(kMaxArrivals));
  }
  Cta& cta = *machine.memory().find_cta(address);
  const uint32_t offset = cta.offset_of(address);
  MBarrierState& barrier = cta.mbarriers.at(offset);
  if (!barrier.waiters.empty()) {
    machine.reporter().fail(ReportKind::kProtocol, "mbarrier_init", where,
                            "threads wait for mbarrier " + barrier.name);
  }
  if (barrier.is_live) {
    machine.reporter().fail(
        ReportKind::kProtocol, "mbarrier_init", where,
        "mbarrier " + barrier.name + " is initialised already: invalidate comes first");
  }
  std::string name = barrier.name.empty() ? "at +" + std::to_string(offset) : barrier.name;
  barrier = {};
  barrier.cta = cta.index;
  barrier.is_live = true;
  cta.mbarriers.note_init(offset);
  barrier.expected = arrivals;
  barrier.pending = arrivals;
  barrier.name = std::move(name);
  barrier.init = thread.access("mbarrier_init", where).stamp;
}

void mbarrier_invalidate(void* address, const Where& where) {
  Machine& machine = Machine::current();
  MBarrierState& barrier = machine.mbarriers().find(address, "mbarrier_invalidate", where);
  if (!barrier.waiters.empty()) {
    machine.reporter().fail(ReportKind::kProtocol, "mbarrier_invalidate", where,
                            "threads wait for mbarrier " + barrier.name);
  }
  if (barrier.pending_bytes != 0) {
    machine.reporter().fail(ReportKind::kProtocol, "mbarrier_invalidate", where,
                            "mbarrier " + barrier.name + " still waits for " +
                                std::to_string(barrier.pending_bytes) + " bytes");
  }
  machine.memory().thread_shared(address, 8, true, "mbarrier_invalidate", where);
  barrier.is_live = false;  // operations in flight may still refer to it
}

void* barrier_beside(const void* address) {
  Machine& machine = Machine::current();
  return machine.mutations().are_counted() ? machine.mbarriers().beside(address) : nullptr;
}

namespace {

// At the barrier at the same offset in CTA `cta_rank`, -1: this one.
void arrive(void* address, int cta_rank, uint32_t arrivals, uint32_t expected_bytes,
            bool is_relaxed, const char* primitive, const Where& where) {
  Machine& machine = Machine::current();
  Thread& thread = Machine::current_thread();
  void* target = cta_rank < 0 ? address : map_shared(address, cta_rank, where);
  Scope scope = cta_rank < 0 ? Scope::kCta : Scope::kCluster;  // arch/ptx/mbarrier.hpp
  if (expected_bytes != 0) {
    constexpr uint32_t kUnit = 16;  // of the sizes of copies
    const Mutation mutation =
        machine.mutations().at("expect_tx", where,
                               Mutation::kDrop | Mutation::kMore |
                                   (expected_bytes > kUnit ? Mutation::kFewer : Mutation::kNone));
    if (mutation == Mutation::kDrop) expected_bytes = 0;
    if (mutation == Mutation::kMore) expected_bytes += kUnit;
    if (mutation == Mutation::kFewer) expected_bytes -= kUnit;
  }
  if (arrivals != 0) {
    void* const beside = barrier_beside(target);
    const Mutation mutation =
        machine.mutations().at(primitive, where,
                               Mutation::kDrop | machine.mutations().narrower(scope) |
                                   (beside != nullptr ? Mutation::kOtherBarrier : Mutation::kNone));
    if (mutation == Mutation::kDrop) arrivals = 0;
    if (mutation == Mutation::kNarrow) scope = machine.mutations().narrowed(scope);
    if (mutation == Mutation::kOtherBarrier) target = beside;
  }
  if (arrivals == 0 && expected_bytes == 0) return;
  MBarrierState& barrier = machine.mbarriers().find(target, primitive, where);
  const Cta* const owner = machine.memory().find_cta(target);
  const uint32_t cta = thread.cta->index;
  if (scope == Scope::kCta && owner != thread.cta) {
    machine.reporter().report(ReportKind::kRace, primitive, where,
                              "the arrival at mbarrier " + barrier.name + " of CTA " +
                                  std::to_string(owner->index) +
                                  " has scope .cta, which excludes the threads that wait there: "
                                  ".cluster is needed");
  }
  const auto perform = [=, &machine, &barrier](const Clocks& known) {
    if (owner->running == 0) {
      machine.reporter().fail(ReportKind::kProtocol, primitive, where,
                              "arrival at mbarrier " + barrier.name + " of CTA " +
                                  std::to_string(owner->index) + ", which has ended");
    }
    constexpr int64_t kMaxBytes = (1 << 20) - 1;  // PTX ISA, range of the transaction count
    barrier.pending_bytes += expected_bytes;
    if (barrier.pending_bytes > kMaxBytes) {
      machine.reporter().fail(ReportKind::kProtocol, primitive, where,
                              "mbarrier " + barrier.name + " expects " +
                                  std::to_string(barrier.pending_bytes) + " bytes, more than the " +
                                  std::to_string(kMaxBytes) + " that it can count");
    }
    if (arrivals == 0) return;
    if (is_relaxed) barrier.relaxed_gathering.join(known);  // the arrival may end the phase
    machine.mbarriers().arrive(barrier, arrivals, {known, cta, scope, primitive, where});
  };
  const Clocks fenced = is_relaxed ? fenced_tensor_accesses(thread) : Clocks{};
  if (owner == thread.cta) {
    perform(is_relaxed ? fenced : *thread.clocks);
    thread.tick();
    return;
  }
  auto operation = machine.engines().make_operation(
      primitive, where, thread, [perform, fenced, is_relaxed](AsyncOperation& self) {
        perform(is_relaxed ? fenced : *self.known);
      });
  operation->is_detached = true;
  machine.engines().submit(std::move(operation), &thread.remote_arrivals);
}

// Returns when the phase has ended; nullptr: the mutant drops the wait.
const MBarrierState* wait_for_phase(void* address, uint32_t parity, Mutation mutation,
                                    const char* primitive, const Where& where) {
  Machine& machine = Machine::current();
  Thread& thread = Machine::current_thread();
  if (mutation == Mutation::kDrop) return nullptr;
  if (mutation == Mutation::kParity) parity ^= 1U;
  MBarrierState& barrier = machine.mbarriers().find(address, primitive, where);
  if (barrier.is_in_phase(parity)) {
    const uint32_t awaited = barrier.phase;
    machine.trace().begin(thread, barrier.name, "wait");
    while (barrier.phase == awaited) {
      barrier.waiters.push_back(&thread);
      machine.scheduler().block(
          {.primitive = primitive, .where = where, .barrier = &barrier, .phase = awaited});
    }
    machine.trace().flow_end(thread, barrier.last_flow);
    machine.trace().end(thread, "wait");
    if (barrier.phase > awaited + 1) {
      machine.reporter().report(
          ReportKind::kProtocol, primitive, where,
          "mbarrier " + barrier.name + " went on to phase " + std::to_string(barrier.phase) +
              " before this thread, which waits for phase " + std::to_string(awaited) +
              ", saw it end\n  its parity is the same again: on hardware the wait may never "
              "return");
    }
  }
  return &barrier;
}

// A wait acquires what the arrivals of the ended phase released.
void acquire_phase(const MBarrierState& barrier, Scope scope, const char* primitive,
                   const Where& where) {
  Machine& machine = Machine::current();
  Thread& thread = Machine::current_thread();
  thread.acquire(barrier.completed);
  machine.scopes().acquire(thread, barrier.completed_from_others, scope, primitive, where);
}

}  // namespace

void mbarrier_arrive(void* address, int cta_rank, uint32_t arrivals, uint32_t expected_bytes,
                     const char* primitive, const Where& where) {
  arrive(address, cta_rank, arrivals, expected_bytes, false, primitive, where);
}

void mbarrier_arrive_relaxed(void* address, int cta_rank, uint32_t expected_bytes,
                             const char* primitive, const Where& where) {
  arrive(address, cta_rank, 1, expected_bytes, true, primitive, where);
}

bool mbarrier_test(void* address, uint32_t parity, const Where& where) {
  Machine& machine = Machine::current();
  const Mutation mutation =
      machine.mutations().at("mbarrier_test_wait", where, Mutation::kDrop | Mutation::kParity);
  if (mutation == Mutation::kDrop) return true;
  if (mutation == Mutation::kParity) parity ^= 1U;
  MBarrierState& barrier = machine.mbarriers().find(address, "mbarrier_test_wait", where);
  if (barrier.is_in_phase(parity)) {
    machine.scheduler().poll({.primitive = "mbarrier_test_wait",
                              .where = where,
                              .barrier = &barrier,
                              .phase = barrier.phase});
    if (barrier.is_in_phase(parity)) return false;
  }
  machine.scheduler().progress();
  acquire_phase(barrier, Scope::kCta, "mbarrier_test_wait", where);
  return true;
}

void mbarrier_wait(void* address, uint32_t parity, Scope scope, const char* primitive,
                   const Where& where) {
  Machine& machine = Machine::current();
  const Mutation mutation = machine.mutations().at(
      primitive, where, Mutation::kDrop | Mutation::kParity | machine.mutations().narrower(scope));
  const MBarrierState* const barrier = wait_for_phase(address, parity, mutation, primitive, where);
  if (barrier == nullptr) return;
  if (mutation == Mutation::kNarrow) scope = machine.mutations().narrowed(scope);
  acquire_phase(*barrier, scope, primitive, where);
}

void mbarrier_wait_relaxed(void* address, uint32_t parity, const char* primitive,
                           const Where& where) {
  const Mutation mutation =
      Machine::current().mutations().at(primitive, where, Mutation::kDrop | Mutation::kParity);
  const MBarrierState* const barrier = wait_for_phase(address, parity, mutation, primitive, where);
  if (barrier == nullptr) return;
  Machine::current_thread().acquire(barrier->relaxed_completed);
}

void fence_mbarrier_init(const Where& where) {
  Machine& machine = Machine::current();
  if (machine.mutations().is_dropped("fence_mbarrier_init", where)) return;
  Thread& thread = Machine::current_thread();
  thread.cta->mbarriers.fence_inits(thread.agent);
  thread.cta->mbarriers.release_inits(thread.agent);
}

void name_mbarrier(void* address, std::string name) {
  Machine& machine = Machine::current();
  Cta* const cta = machine.memory().find_cta(address);
  if (cta != nullptr) cta->mbarriers.at(cta->offset_of(address)).name = std::move(name);
}

}  // namespace pagoda::emulator
