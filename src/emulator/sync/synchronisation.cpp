// What orders threads: barriers of every kind, and instructions that several threads execute as
// one.
#include "emulator/sync/synchronisation.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "emulator/machine/machine.hpp"
#include "emulator/machine/mutation.hpp"
#include "emulator/memory/tensor_memory.hpp"

namespace pagoda::emulator {

Mutation Machine::mutation_at(const char* primitive, const Where& where, Mutations kinds) {
  maybe_yield();
  if (next_step() > options_.max_steps) {
    fail(ReportKind::kDeadlock, primitive, where,
         "the kernel has not ended after " + std::to_string(options_.max_steps) +
             " synchronising calls (Options::max_steps)");
  }
  if (options_.mutation == nullptr) return Mutation::kNone;
  return options_.mutation->at(primitive, where, running_->role, kinds);
}

Scope Machine::narrowed(Scope scope) const {
  const auto ctas = static_cast<uint32_t>(shape_.grid.x * shape_.grid.y * shape_.grid.z);
  if (scope >= Scope::kGpu && ctas > cluster_size()) {
    return cluster_size() > 1 ? Scope::kCluster : Scope::kCta;
  }
  return scope != Scope::kCta && cluster_size() > 1 ? Scope::kCta : scope;
}

void Machine::tick(Thread& thread) { thread.own_clocks().generic.set(thread.agent, ++thread.time); }

void Machine::release_into(Thread& thread, Clocks& target) {
  target.join(*thread.clocks);
  tick(thread);
}

void Machine::acquire_from(Thread& thread, const Clocks& source) {
  thread.own_clocks().join(source);
}

// --- scopes ------------------------------------------------------------------------------------

void Machine::release_to(std::vector<Released>& target, const Released& released) {
  for (Released& entry : target) {
    if (entry.cta != released.cta || entry.scope != released.scope) continue;
    entry.clocks.join(released.clocks);
    entry.primitive = released.primitive;
    entry.where = released.where;
    return;
  }
  target.push_back(released);
}

void Machine::acquire_at(Thread& thread, const std::vector<Released>& source, Scope scope,
                         const char* primitive, const Where& where) {
  const uint32_t cta = thread.cta->index;
  for (const Released& released : source) {
    if (includes(released.scope, released.cta, cta, cluster_size()) &&
        includes(scope, cta, released.cta, cluster_size())) {
      acquire_from(thread, released.clocks);
      continue;
    }
    const auto is_same = [&](const NarrowLink& link) {
      return link.released.cta == released.cta && link.cta == cta &&
             link.released.where.line() == released.where.line() &&
             link.where.line() == where.line() &&
             std::string_view(link.where.file_name()) == where.file_name();
    };
    const auto known = std::find_if(narrow_links_.begin(), narrow_links_.end(), is_same);
    if (known != narrow_links_.end()) {
      known->released.clocks.join(released.clocks);
    } else {
      narrow_links_.push_back({released, cta, scope, primitive, where});
    }
  }
}

void Machine::synchronise(const void* address, AtomicUse use, const char* primitive,
                          const Where& where) {
  Thread& thread = *running_;
  std::vector<Released>& released = released_[address];
  const uint32_t cta = thread.cta->index;
  if (use.reads && use.acquires) {
    acquire_at(thread, released, use.scope, primitive, where);
  } else if (use.reads) {
    for (const Released& entry : released) {
      // What the read itself does not observe, no later fence acquires.
      if (includes(use.scope, cta, entry.cta, cluster_size())) {
        release_to(thread.seen_relaxed, entry);
      } else {
        acquire_at(thread, {entry}, use.scope, primitive, where);  // notes that it is too narrow
      }
    }
  }
  if (use.writes && use.releases) {
    release_to(released, {*thread.clocks, cta, use.scope, primitive, where});
    tick(thread);
  } else if (use.writes) {
    for (size_t fence = 0; fence < thread.fence_released.size(); ++fence) {
      if (!thread.fence_released[fence]) continue;
      release_to(released, {*thread.fence_released[fence], cta,
                            std::min(static_cast<Scope>(fence), use.scope), primitive, where});
    }
  }
}

void Machine::thread_fence(Scope scope, const Where& where) {
  Thread& thread = *running_;
  acquire_at(thread, thread.seen_relaxed, scope, "thread_fence", where);
  const auto fence = static_cast<size_t>(std::min(scope, Scope::kGpu));
  for (size_t narrower = 0; narrower < fence; ++narrower) thread.fence_released[narrower].reset();
  thread.fence_released[fence] = std::make_shared<const Clocks>(*thread.clocks);
  tick(thread);
}

// --- mbarrier ----------------------------------------------------------------------------------

MBarrierState& Machine::mbarrier(const void* address, const char* primitive, const Where& where) {
  if (reinterpret_cast<uintptr_t>(address) % 8 != 0) {
    fail(ReportKind::kBounds, primitive, where, "an mbarrier is not aligned to 8 bytes");
  }
  Cta* const cta = find_cta(address);
  if (cta == nullptr) {
    fail(ReportKind::kBounds, primitive, where, "an mbarrier lies outside of shared memory");
  }
  if (cta->running == 0) {
    fail(ReportKind::kProtocol, primitive, where,
         "use of an mbarrier of CTA " + std::to_string(cta->index) + ", which has ended");
  }
  const auto found = cta->mbarriers.find(shared_offset(*cta, address));
  if (found == cta->mbarriers.end() || !found->second.is_live) {
    fail(ReportKind::kProtocol, primitive, where,
         "use of an mbarrier that was not initialised, at " +
             describe_shared(*cta, shared_offset(*cta, address)));
  }
  MBarrierState& barrier = found->second;
  if (running_ != nullptr && !running_->access(primitive, where).is_after(barrier.init, true)) {
    report(ReportKind::kRace, primitive, where,
           "use of mbarrier " + barrier.name +
               " is not ordered after its initialisation\n  a barrier of the CTA (or cluster) is "
               "missing after init");
  }
  return barrier;
}

namespace {

void end_phase_if_complete(Machine& machine, MBarrierState& barrier) {
  if (barrier.pending != 0 || barrier.pending_bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.expected;
  barrier.completed = std::exchange(barrier.gathering, Clocks{});
  barrier.completed_from_others = std::exchange(barrier.gathering_from_others, {});
  barrier.relaxed_completed = std::exchange(barrier.relaxed_gathering, Clocks{});
  barrier.last_flow = machine.trace_arrival(barrier.name);
  for (Thread* waiter : std::exchange(barrier.waiters, {})) machine.wake(*waiter);
}

}  // namespace

void Machine::mbarrier_arrive(MBarrierState& barrier, uint32_t count, const Released& released) {
  const char* const primitive = released.primitive;
  const Where& where = released.where;
  if (barrier.pending < static_cast<int64_t>(count)) {
    fail(ReportKind::kProtocol, primitive, where,
         "mbarrier " + barrier.name + " gets " + std::to_string(count) +
             " arrivals where its phase " + std::to_string(barrier.phase) + " wants only " +
             std::to_string(barrier.pending) + " more of " + std::to_string(barrier.expected));
  }
  progress();
  count_arrival(barrier, count, primitive, where, false);
  if (released.cta == barrier.cta) {
    barrier.gathering.join(released.clocks);
  } else {
    release_to(barrier.gathering_from_others, released);
  }
  barrier.pending -= count;
  end_phase_if_complete(*this, barrier);
}

void Machine::mbarrier_complete_bytes(MBarrierState& barrier, int64_t bytes, const Clocks& known) {
  progress();
  if (completing_ != nullptr) {
    count_arrival(barrier, static_cast<uint64_t>(bytes), completing_->primitive, completing_->where,
                  true);
  }
  barrier.gathering.join(known);
  barrier.pending_bytes -= bytes;
  if (completing_ != nullptr && !barrier.is_live) {
    fail(ReportKind::kProtocol, completing_->primitive, completing_->where,
         "the copy ends after its mbarrier " + barrier.name + " was invalidated");
  }
  if (completing_ != nullptr && barrier.pending == 0 && barrier.pending_bytes < 0) {
    fail(ReportKind::kProtocol, completing_->primitive, completing_->where,
         "mbarrier " + barrier.name + " gets " + std::to_string(-barrier.pending_bytes) +
             " bytes more than its phase " + std::to_string(barrier.phase) + " expects");
  }
  end_phase_if_complete(*this, barrier);
}

void mbarrier_init(void* address, uint32_t arrivals, const Where& where) {
  Machine& machine = Machine::current();
  Thread& thread = Machine::current_thread();
  const Mutation mutation = machine.mutation_at(
      "mbarrier_init", where,
      Mutation::kDrop | Mutation::kMore | (arrivals > 1 ? Mutation::kFewer : Mutation::kNone));
  if (mutation == Mutation::kDrop) return;
  if (mutation == Mutation::kMore) ++arrivals;
  if (mutation == Mutation::kFewer) --arrivals;
  machine.thread_shared(address, 8, true, "mbarrier_init", where);
  constexpr uint32_t kMaxArrivals = (1U << 20) - 1;  // PTX ISA, mbarrier.init
  if (arrivals == 0 || arrivals > kMaxArrivals) {
    machine.fail(ReportKind::kProtocol, "mbarrier_init", where,
                 "arrival count " + std::to_string(arrivals) + " is not in 1.." +
                     std::to_string(kMaxArrivals));
  }
  Cta& cta = *machine.find_cta(address);
  const uint32_t offset = machine.shared_offset(cta, address);
  MBarrierState& barrier = cta.mbarriers[offset];
  if (!barrier.waiters.empty()) {
    machine.fail(ReportKind::kProtocol, "mbarrier_init", where,
                 "threads wait for mbarrier " + barrier.name);
  }
  if (barrier.is_live) {
    machine.fail(ReportKind::kProtocol, "mbarrier_init", where,
                 "mbarrier " + barrier.name + " is initialised already: invalidate comes first");
  }
  std::string name = barrier.name.empty() ? "at +" + std::to_string(offset) : barrier.name;
  barrier = {};
  barrier.cta = cta.index;
  barrier.is_live = true;
  cta.barriers_begin = std::min(cta.barriers_begin, offset);
  cta.barriers_end = std::max(cta.barriers_end, offset + 8);
  barrier.expected = arrivals;
  barrier.pending = arrivals;
  barrier.name = std::move(name);
  barrier.init = thread.access("mbarrier_init", where).stamp;
}

void mbarrier_invalidate(void* address, const Where& where) {
  Machine& machine = Machine::current();
  MBarrierState& barrier = machine.mbarrier(address, "mbarrier_invalidate", where);
  if (!barrier.waiters.empty()) {
    machine.fail(ReportKind::kProtocol, "mbarrier_invalidate", where,
                 "threads wait for mbarrier " + barrier.name);
  }
  if (barrier.pending_bytes != 0) {
    machine.fail(ReportKind::kProtocol, "mbarrier_invalidate", where,
                 "mbarrier " + barrier.name + " still waits for " +
                     std::to_string(barrier.pending_bytes) + " bytes");
  }
  machine.thread_shared(address, 8, true, "mbarrier_invalidate", where);
  barrier.is_live = false;  // operations in flight may still refer to it
}

// Not the one after: two stages of a ring that swap their arrivals may be as good as before.
void* barrier_beside(Machine& machine, void* address) {
  const Cta* const cta =
      machine.options().mutation != nullptr ? machine.find_cta(address) : nullptr;
  if (cta == nullptr) return nullptr;
  const uint32_t offset = machine.shared_offset(*cta, address);
  const auto before = cta->mbarriers.find(offset - 8);
  if (before != cta->mbarriers.end() && before->second.is_live) return cta->shared + offset - 8;
  uint32_t last = offset;
  for (const auto& [at, barrier] : cta->mbarriers) {
    if (barrier.is_live) last = std::max(last, at);
  }
  return last != offset ? cta->shared + last : nullptr;
}

namespace {

// At the barrier at the same place in CTA `cta_rank`, -1: this one.
void arrive(void* address, int cta_rank, uint32_t arrivals, uint32_t expected_bytes,
            bool is_relaxed, const char* primitive, const Where& where) {
  Machine& machine = Machine::current();
  Thread& thread = Machine::current_thread();
  void* target = cta_rank < 0 ? address : map_shared(address, cta_rank, where);
  Scope scope = cta_rank < 0 ? Scope::kCta : Scope::kCluster;  // arch/ptx/mbarrier.hpp
  // Two things that a mutant can change.
  if (expected_bytes != 0) {
    constexpr uint32_t kUnit = 16;  // of the sizes of copies
    const Mutation mutation =
        machine.mutation_at("expect_tx", where,
                            Mutation::kDrop | Mutation::kMore |
                                (expected_bytes > kUnit ? Mutation::kFewer : Mutation::kNone));
    if (mutation == Mutation::kDrop) expected_bytes = 0;
    if (mutation == Mutation::kMore) expected_bytes += kUnit;
    if (mutation == Mutation::kFewer) expected_bytes -= kUnit;
  }
  if (arrivals != 0) {
    void* const beside = barrier_beside(machine, target);
    const Mutation mutation =
        machine.mutation_at(primitive, where,
                            Mutation::kDrop | (is_relaxed ? Mutations() : machine.narrower(scope)) |
                                (beside != nullptr ? Mutation::kOtherBarrier : Mutation::kNone));
    if (mutation == Mutation::kDrop) arrivals = 0;
    if (mutation == Mutation::kNarrow) scope = machine.narrowed(scope);
    if (mutation == Mutation::kOtherBarrier) target = beside;
  }
  if (arrivals == 0 && expected_bytes == 0) return;
  MBarrierState& barrier = machine.mbarrier(target, primitive, where);
  const Cta* const owner = machine.find_cta(target);
  const uint32_t cta = thread.cta->index;
  const auto perform = [=, &machine, &barrier](const Clocks& known) {
    if (owner->running == 0) {
      machine.fail(ReportKind::kProtocol, primitive, where,
                   "arrival at mbarrier " + barrier.name + " of CTA " +
                       std::to_string(owner->index) + ", which has ended");
    }
    constexpr int64_t kMaxBytes = (1 << 20) - 1;  // PTX ISA, range of the transaction count
    barrier.pending_bytes += expected_bytes;
    if (barrier.pending_bytes > kMaxBytes) {
      machine.fail(ReportKind::kProtocol, primitive, where,
                   "mbarrier " + barrier.name + " expects " +
                       std::to_string(barrier.pending_bytes) + " bytes, more than the " +
                       std::to_string(kMaxBytes) + " that it can count");
    }
    if (arrivals == 0) return;
    if (is_relaxed) barrier.relaxed_gathering.join(known);  // the arrival may end the phase
    machine.mbarrier_arrive(barrier, arrivals, {known, cta, scope, primitive, where});
  };
  const Clocks fenced = is_relaxed ? fenced_tensor_accesses(thread) : Clocks{};
  if (owner == thread.cta) {
    perform(is_relaxed ? fenced : *thread.clocks);
    machine.tick(thread);
    return;
  }
  auto operation = machine.make_operation(primitive, where, thread,
                                          [perform, fenced, is_relaxed](AsyncOperation& self) {
                                            perform(is_relaxed ? fenced : *self.known);
                                          });
  operation->is_detached = true;
  machine.submit(std::move(operation), &thread.remote_arrivals);
}

// Returns when the phase has ended; nullptr: the wait is left out.
const MBarrierState* wait_for_phase(void* address, uint32_t parity, Mutation mutation,
                                    const char* primitive, const Where& where) {
  Machine& machine = Machine::current();
  Thread& thread = Machine::current_thread();
  if (mutation == Mutation::kDrop) return nullptr;
  if (mutation == Mutation::kParity) parity ^= 1U;
  MBarrierState& barrier = machine.mbarrier(address, primitive, where);
  // The phase of parity p has ended when the current phase has the other parity.
  if ((barrier.phase & 1U) == parity) {
    const uint32_t awaited = barrier.phase;
    machine.trace_begin(thread, barrier.name, "wait");
    while (barrier.phase == awaited) {
      barrier.waiters.push_back(&thread);
      machine.block({.what = {},
                     .primitive = primitive,
                     .where = where,
                     .barrier = &barrier,
                     .phase = awaited});
    }
    machine.trace_flow_end(thread, barrier.last_flow);
    machine.trace_end(thread, "wait");
    if (barrier.phase > awaited + 1) {
      machine.report(
          ReportKind::kProtocol, primitive, where,
          "mbarrier " + barrier.name + " went on to phase " + std::to_string(barrier.phase) +
              " before this thread, which waits for phase " + std::to_string(awaited) +
              ", saw it end\n  its parity is the same again: on hardware the wait may never "
              "return");
    }
  }
  return &barrier;
}

// What a wait learns of the phase that has ended.
void acquire_phase(const MBarrierState& barrier, Scope scope, const char* primitive,
                   const Where& where) {
  Machine& machine = Machine::current();
  Thread& thread = Machine::current_thread();
  machine.acquire_from(thread, barrier.completed);
  machine.acquire_at(thread, barrier.completed_from_others, scope, primitive, where);
}

}  // namespace

void mbarrier_arrive(void* address, int cta_rank, uint32_t arrivals, uint32_t expected_bytes,
                     const char* primitive, const Where& where) {
  arrive(address, cta_rank, arrivals, expected_bytes, false, primitive, where);
}

void mbarrier_arrive_relaxed(void* address, int cta_rank, const char* primitive,
                             const Where& where) {
  arrive(address, cta_rank, 1, 0, true, primitive, where);
}

bool mbarrier_test(void* address, uint32_t parity, const Where& where) {
  Machine& machine = Machine::current();
  const Mutation mutation =
      machine.mutation_at("mbarrier_test_wait", where, Mutation::kDrop | Mutation::kParity);
  if (mutation == Mutation::kDrop) return true;
  if (mutation == Mutation::kParity) parity ^= 1U;
  MBarrierState& barrier = machine.mbarrier(address, "mbarrier_test_wait", where);
  if ((barrier.phase & 1U) == parity) {
    machine.poll({.what = {},
                  .primitive = "mbarrier_test_wait",
                  .where = where,
                  .barrier = &barrier,
                  .phase = barrier.phase});
    if ((barrier.phase & 1U) == parity) return false;
  }
  machine.progress();
  acquire_phase(barrier, Scope::kCta, "mbarrier_test_wait", where);
  return true;
}

void mbarrier_wait(void* address, uint32_t parity, Scope scope, const char* primitive,
                   const Where& where) {
  Machine& machine = Machine::current();
  const Mutation mutation = machine.mutation_at(
      primitive, where, Mutation::kDrop | Mutation::kParity | machine.narrower(scope));
  const MBarrierState* const barrier = wait_for_phase(address, parity, mutation, primitive, where);
  if (barrier == nullptr) return;
  if (mutation == Mutation::kNarrow) scope = machine.narrowed(scope);
  acquire_phase(*barrier, scope, primitive, where);
}

void mbarrier_wait_relaxed(void* address, uint32_t parity, const char* primitive,
                           const Where& where) {
  const Mutation mutation =
      Machine::current().mutation_at(primitive, where, Mutation::kDrop | Mutation::kParity);
  const MBarrierState* const barrier = wait_for_phase(address, parity, mutation, primitive, where);
  if (barrier == nullptr) return;
  Machine::current().acquire_from(Machine::current_thread(), barrier->relaxed_completed);
}

void fence_mbarrier_init(const Where& where) {
  Machine& machine = Machine::current();
  if (machine.is_dropped("fence_mbarrier_init", where)) return;
  Thread& thread = Machine::current_thread();
  for (auto& [offset, barrier] : thread.cta->mbarriers) {
    // PTX ISA: of the inits of this thread only.
    if (barrier.init.agent == thread.agent) barrier.is_fenced = true;
  }
}

void name_mbarrier(void* address, std::string name) {
  Machine& machine = Machine::current();
  Cta* const cta = machine.find_cta(address);
  if (cta != nullptr) cta->mbarriers[machine.shared_offset(*cta, address)].name = std::move(name);
}

MBarrierState& barrier_for_copy(void* address, const char* primitive, const Where& where) {
  Machine& machine = Machine::current();
  MBarrierState& barrier = machine.mbarrier(address, primitive, where);
  if (!barrier.is_fenced) {
    machine.report(ReportKind::kProtocol, primitive, where,
                   "the copy engine may not see the initialisation of mbarrier " + barrier.name +
                       "\n  fence_mbarrier_init is missing after init");
  }
  return barrier;
}

// --- proxies -----------------------------------------------------------------------------------

void fence_proxy_async(const char* primitive, const Where& where) {
  Machine& machine = Machine::current();
  if (machine.is_dropped(primitive, where)) return;
  Thread& thread = Machine::current_thread();
  Clocks& clocks = thread.own_clocks();
  clocks.async.join(clocks.generic);
  machine.tick(thread);  // what the thread writes from here on is not covered
  for (auto& [offset, barrier] : thread.cta->mbarriers) {
    if (barrier.init.agent == thread.agent) barrier.is_fenced = true;
  }
}

// --- named barriers ----------------------------------------------------------------------------

void named_barrier(int id, int threads, bool waits, const char* primitive, const Where& where) {
  Machine& machine = Machine::current();
  Thread& thread = Machine::current_thread();
  constexpr int kWarp = 32;
  const bool has_count = std::string_view(primitive) != "syncthreads";
  const Mutation mutation = machine.mutation_at(
      primitive, where,
      Mutation::kDrop |
          (has_count && threads + kWarp <= machine.shape().threads ? Mutation::kMore
                                                                   : Mutation::kNone) |
          (has_count && threads >= 2 * kWarp ? Mutation::kFewer : Mutation::kNone));
  if (mutation == Mutation::kDrop) return;
  if (mutation == Mutation::kMore) threads += kWarp;
  if (mutation == Mutation::kFewer) threads -= kWarp;
  if (id < 0 || id > 15) {
    machine.fail(ReportKind::kProtocol, primitive, where,
                 "barrier id " + std::to_string(id) + " is not in 0..15");
  }
  const bool is_whole_cta = threads == machine.shape().threads;
  if (threads < 32 || threads > machine.shape().threads || (threads % 32 != 0 && !is_whole_cta)) {
    machine.fail(ReportKind::kProtocol, primitive, where,
                 "thread count " + std::to_string(threads) +
                     " is not a multiple of 32 up to the CTA's " +
                     std::to_string(machine.shape().threads));
  }
  NamedBarrierState& barrier = thread.cta->named_barriers[static_cast<size_t>(id)];
  if (barrier.arrived == 0) {
    barrier.expected = threads;
  } else if (barrier.expected != threads) {
    machine.fail(ReportKind::kProtocol, primitive, where,
                 "named barrier " + std::to_string(id) + " is used with " +
                     std::to_string(threads) + " threads, in the same phase as with " +
                     std::to_string(barrier.expected));
  }
  machine.progress();
  machine.release_into(thread, barrier.gathering);
  const uint32_t awaited = barrier.phase;
  if (++barrier.arrived == barrier.expected) {
    barrier.completed = std::exchange(barrier.gathering, Clocks{});
    barrier.arrived = 0;
    ++barrier.phase;
    for (Thread* waiter : std::exchange(barrier.waiters, {})) machine.wake(*waiter);
  }
  if (!waits) return;
  if (barrier.phase == awaited) {
    if (machine.is_tracing(thread)) {
      machine.trace_begin(
          thread, barrier.name != nullptr ? barrier.name : "barrier " + std::to_string(id), "wait");
    }
    while (barrier.phase == awaited) {
      barrier.waiters.push_back(&thread);
      machine.block(
          {.what = "named barrier " + std::to_string(id), .primitive = primitive, .where = where});
    }
    machine.trace_end(thread, "wait");
  }
  machine.acquire_from(thread, barrier.completed);
}

// --- clusters ----------------------------------------------------------------------------------

void cluster_arrive(bool releases, const Where& where) {
  Machine& machine = Machine::current();
  Thread& thread = Machine::current_thread();
  if (machine.is_dropped("cluster_arrive", where)) return;
  Cluster& cluster = *thread.cta->cluster;
  if (thread.cluster_arrivals > thread.cluster_waits) {
    machine.fail(ReportKind::kProtocol, "cluster_arrive", where,
                 "the thread arrives at the cluster barrier twice without a wait between");
  }
  ++thread.cluster_arrivals;
  machine.progress();
  if (releases) {
    machine.finish(thread.remote_arrivals);  // what comes before a release is performed before it
    machine.release_into(thread, cluster.gathering);
  }
  const int all = static_cast<int>(cluster.ctas.size()) * machine.shape().threads;
  if (++cluster.arrived == all) {
    cluster.completed = std::exchange(cluster.gathering, Clocks{});
    cluster.arrived = 0;
    ++cluster.phase;
    for (Thread* waiter : std::exchange(cluster.waiters, {})) machine.wake(*waiter);
  }
}

void cluster_wait(const Where& where) {
  Machine& machine = Machine::current();
  Thread& thread = Machine::current_thread();
  if (machine.is_dropped("cluster_wait", where)) return;
  Cluster& cluster = *thread.cta->cluster;
  if (thread.cluster_waits >= thread.cluster_arrivals) {
    machine.fail(ReportKind::kProtocol, "cluster_wait", where,
                 "the thread waits for a phase of the cluster barrier at which it did not arrive");
  }
  if (cluster.phase == thread.cluster_waits) {
    machine.trace_begin(thread, "cluster barrier", "wait");
    while (cluster.phase == thread.cluster_waits) {
      cluster.waiters.push_back(&thread);
      machine.block({.what = "the cluster barrier", .primitive = "cluster_wait", .where = where});
    }
    machine.trace_end(thread, "wait");
  }
  ++thread.cluster_waits;
  machine.acquire_from(thread, cluster.completed);
}

void* map_shared(void* local, int rank, const Where& where) {
  Machine& machine = Machine::current();
  Cta& cta = *Machine::current_thread().cta;
  const auto& members = cta.cluster->ctas;
  if (rank < 0 || rank >= static_cast<int>(members.size())) {
    machine.fail(ReportKind::kBounds, "map_shared", where,
                 "CTA rank " + std::to_string(rank) + " is not in the cluster of " +
                     std::to_string(members.size()));
  }
  if (!cta.owns(local)) {
    machine.fail(ReportKind::kBounds, "map_shared", where,
                 "the address is not in this CTA's shared memory");
  }
  return members[static_cast<size_t>(rank)]->shared + machine.shared_offset(cta, local);
}

void store_async(void* to, const void* value, size_t bytes, void* mine, int rank,
                 const Where& where) {
  Machine& machine = Machine::current();
  MBarrierState& barrier = machine.mbarrier(map_shared(mine, rank, where), "store_async", where);
  uint64_t copy = 0;
  std::memcpy(&copy, value, bytes);
  machine.submit(machine.make_operation(
      "store_async", where, Machine::current_thread(),
      [=, &machine, &barrier](AsyncOperation& self) {
        // Not the asynchronous proxy: a store that completes later (PTX ISA, st.async).
        machine.access_shared(to, bytes, true, self.access(Proxy::kGeneric));
        std::memcpy(to, &copy, bytes);
        machine.mbarrier_complete_bytes(barrier, static_cast<int64_t>(bytes), self.completion());
      }));
}

// --- instructions of several threads -----------------------------------------------------------

namespace {

// Returns true to the thread that arrives last.
bool meet(Machine& machine, Rendezvous& meeting, int member, int wanted, uint32_t mask,
          const char* primitive, const Where& where, void* arguments) {
  Thread& thread = Machine::current_thread();
  if (meeting.arrived == 0) {
    meeting.primitive = primitive;
    meeting.where = where;
    meeting.lane_mask = mask;
  } else if (std::string_view(meeting.primitive) != primitive || meeting.lane_mask != mask) {
    machine.fail(ReportKind::kProtocol, primitive, where,
                 std::string("the threads that execute this together are not at the same "
                             "instruction: others are in ") +
                     meeting.primitive + " at line " + std::to_string(meeting.where.line()) +
                     (meeting.lane_mask != mask ? ", or name another set of lanes" : ""));
  }
  meeting.arguments[static_cast<size_t>(member)] = arguments;
  meeting.threads[static_cast<size_t>(member)] = &thread;
  return ++meeting.arrived == wanted;
}

void leave(Machine& machine, Rendezvous& meeting, int members) {
  Thread& last = Machine::current_thread();
  meeting.arrived = 0;
  ++meeting.generation;
  for (int i = 0; i < members; ++i) {
    Thread* const thread = std::exchange(meeting.threads[static_cast<size_t>(i)], nullptr);
    if (thread != nullptr && thread != &last) machine.wake(*thread);
  }
}

}  // namespace

void Machine::collective_warp(uint32_t lane_mask, const char* primitive, const Where& where,
                              void* arguments, const Execute& execute) {
  Thread& thread = *running_;
  if ((lane_mask >> thread.lane() & 1U) == 0) {
    fail(ReportKind::kProtocol, primitive, where,
         "the mask does not name the lane that executes it");
  }
  const int lanes_of_warp = std::min(32, shape_.threads - thread.warp() * 32);
  if (lanes_of_warp < 32) lane_mask &= (1U << lanes_of_warp) - 1U;
  Rendezvous& meeting = thread.cta->warps[static_cast<size_t>(thread.warp())].rendezvous;
  const uint64_t generation = meeting.generation;
  if (meet(*this, meeting, thread.lane(), __builtin_popcount(lane_mask), lane_mask, primitive,
           where, arguments)) {
    execute(meeting);
    leave(*this, meeting, 32);
    return;
  }
  while (meeting.generation == generation) {
    block({.what = "the other lanes of its warp", .primitive = primitive, .where = where});
  }
}

void Machine::collective_warpgroup(const char* primitive, const Where& where, void* arguments,
                                   const Execute& execute) {
  Thread& thread = *running_;
  Rendezvous& meeting = thread.cta->warpgroups[static_cast<size_t>(thread.warpgroup())].rendezvous;
  const uint64_t generation = meeting.generation;
  if (meet(*this, meeting, thread.index % 128, 128, ~0U, primitive, where, arguments)) {
    execute(meeting);
    leave(*this, meeting, 128);
    return;
  }
  while (meeting.generation == generation) {
    block({.what = "the other threads of its warpgroup", .primitive = primitive, .where = where});
  }
}

}  // namespace pagoda::emulator
