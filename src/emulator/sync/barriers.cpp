// Named barriers, cluster barriers, proxy fences and stores to other CTAs.
#include "emulator/sync/barriers.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "emulator/machine/machine.hpp"

namespace pagoda::emulator {

// --- proxies -----------------------------------------------------------------------------------

void fence_proxy_async(const char* primitive, const Where& where) {
  Machine& machine = Machine::current();
  if (machine.mutations().is_dropped(primitive, where)) return;
  Thread& thread = Machine::current_thread();
  Clocks& clocks = thread.own_clocks();
  clocks.async.join(clocks.generic);
  thread.tick();  // what the thread writes from here on is not covered
  thread.cta->mbarriers.fence_inits(thread.agent);
}

// --- named barriers ----------------------------------------------------------------------------

// s_barrier counts waves and waits for no access: it orders those that s_waitcnt has completed.
// Neither does syncwarp: what the thread knows of its wave's other lanes may be in flight, too.
void release_waited(Thread& thread, Clocks& target) {
  Clocks waited = *thread.clocks;
  const std::vector<Thread>& threads = thread.cta->threads;
  const auto first = static_cast<size_t>(thread.index - thread.lane());
  const size_t end = std::min(threads.size(), first + static_cast<size_t>(thread.warp_size));
  for (size_t i = first; i < end; ++i) {
    if (waited.generic.get(threads[i].agent) > threads[i].lds_waited) {
      waited.generic.set(threads[i].agent, threads[i].lds_waited);
    }
  }
  target.join(waited);
  thread.tick();
}

void wait_lgkmcnt(const Where& where) {
  Machine& machine = Machine::current();
  if (machine.mutations().is_dropped("s_waitcnt", where)) return;
  Thread& thread = Machine::current_thread();
  thread.lds_waited = thread.time;
  thread.tick();
}

void sync_cta(const Where& where) {
  const LaunchShape& shape = Machine::current().shape();
  if (shape.is_amd()) wait_lgkmcnt(where);
  named_barrier(0, shape.threads, true, "syncthreads", where);
}

void named_barrier(int id, int threads, bool waits, const char* primitive, const Where& where) {
  Machine& machine = Machine::current();
  Thread& thread = Machine::current_thread();
  const int warp = machine.shape().warp_size;
  const bool has_count = std::string_view(primitive) != "syncthreads";
  const Mutation mutation = machine.mutations().at(
      primitive, where,
      Mutation::kDrop |
          (has_count && threads + warp <= machine.shape().threads ? Mutation::kMore
                                                                  : Mutation::kNone) |
          (has_count && threads >= 2 * warp ? Mutation::kFewer : Mutation::kNone));
  if (mutation == Mutation::kDrop) return;
  if (mutation == Mutation::kMore) threads += warp;
  if (mutation == Mutation::kFewer) threads -= warp;
  if (id < 0 || id > 15) {
    machine.reporter().fail(ReportKind::kProtocol, primitive, where,
                            "barrier id " + std::to_string(id) + " is not in 0..15");
  }
  const bool is_whole_cta = threads == machine.shape().threads;
  if (threads < warp || threads > machine.shape().threads ||
      (threads % warp != 0 && !is_whole_cta)) {
    machine.reporter().fail(ReportKind::kProtocol, primitive, where,
                            "thread count " + std::to_string(threads) + " is not a multiple of " +
                                std::to_string(warp) + " up to the CTA's " +
                                std::to_string(machine.shape().threads));
  }
  NamedBarrierState& barrier = thread.cta->named_barriers[static_cast<size_t>(id)];
  if (barrier.arrived == 0) {
    barrier.expected = threads;
  } else if (barrier.expected != threads) {
    machine.reporter().fail(ReportKind::kProtocol, primitive, where,
                            "named barrier " + std::to_string(id) + " is used with " +
                                std::to_string(threads) + " threads, in the same phase as with " +
                                std::to_string(barrier.expected));
  }
  machine.scheduler().progress();
  if (machine.shape().is_amd()) {
    release_waited(thread, barrier.gathering);
  } else {
    thread.release_into(barrier.gathering);
  }
  const uint32_t awaited = barrier.phase;
  if (++barrier.arrived == barrier.expected) {
    barrier.completed = std::exchange(barrier.gathering, Clocks{});
    barrier.arrived = 0;
    ++barrier.phase;
    for (Thread* waiter : std::exchange(barrier.waiters, {})) machine.scheduler().wake(*waiter);
  }
  if (!waits) return;
  if (barrier.phase == awaited) {
    if (machine.trace().is_tracing(thread)) {
      machine.trace().begin(
          thread, barrier.name != nullptr ? barrier.name : "barrier " + std::to_string(id), "wait");
    }
    while (barrier.phase == awaited) {
      barrier.waiters.push_back(&thread);
      machine.scheduler().block({.what = "named barrier ",
                                 .which = std::to_string(id),
                                 .primitive = primitive,
                                 .where = where});
    }
    machine.trace().end(thread, "wait");
  }
  thread.acquire(barrier.completed);
}

// --- clusters ----------------------------------------------------------------------------------

void cluster_arrive(bool releases, const Where& where) {
  Machine& machine = Machine::current();
  Thread& thread = Machine::current_thread();
  if (machine.mutations().is_dropped("cluster_arrive", where)) return;
  Cluster& cluster = *thread.cta->cluster;
  if (thread.cluster_arrivals > thread.cluster_waits) {
    machine.reporter().fail(
        ReportKind::kProtocol, "cluster_arrive", where,
        "the thread arrives at the cluster barrier twice without a wait between");
  }
  thread.cta->mbarriers.note_cluster_arrival(thread.agent, thread.cluster_arrivals);
  ++thread.cluster_arrivals;
  machine.scheduler().progress();
  if (releases) {
    machine.engines().finish(thread.remote_arrivals);  // they are performed before the release
    thread.release_into(cluster.gathering);
  }
  const int all = static_cast<int>(cluster.ctas.size()) * machine.shape().threads;
  if (++cluster.arrived == all) {
    cluster.completed = std::exchange(cluster.gathering, Clocks{});
    cluster.arrived = 0;
    ++cluster.phase;
    for (Thread* waiter : std::exchange(cluster.waiters, {})) machine.scheduler().wake(*waiter);
  }
}

void cluster_wait(const Where& where) {
  Machine& machine = Machine::current();
  Thread& thread = Machine::current_thread();
  if (machine.mutations().is_dropped("cluster_wait", where)) return;
  Cluster& cluster = *thread.cta->cluster;
  if (thread.cluster_waits >= thread.cluster_arrivals) {
    machine.reporter().fail(
        ReportKind::kProtocol, "cluster_wait", where,
        "the thread waits for a phase of the cluster barrier at which it did not arrive");
  }
  if (cluster.phase == thread.cluster_waits) {
    machine.trace().begin(thread, "cluster barrier", "wait");
    while (cluster.phase == thread.cluster_waits) {
      cluster.waiters.push_back(&thread);
      machine.scheduler().block(
          {.what = "the cluster barrier", .primitive = "cluster_wait", .where = where});
    }
    machine.trace().end(thread, "wait");
  }
  ++thread.cluster_waits;
  thread.acquire(cluster.completed);
}

void* map_shared(void* local, int rank, const Where& where) {
  Machine& machine = Machine::current();
  Cta& cta = *Machine::current_thread().cta;
  const auto& members = cta.cluster->ctas;
  if (rank < 0 || rank >= static_cast<int>(members.size())) {
    machine.reporter().fail(ReportKind::kBounds, "map_shared", where,
                            "CTA rank " + std::to_string(rank) + " is not in the cluster of " +
                                std::to_string(members.size()));
  }
  if (!cta.owns(local)) {
    machine.reporter().fail(ReportKind::kBounds, "map_shared", where,
                            "the address is not in this CTA's shared memory");
  }
  return members[static_cast<size_t>(rank)]->shared + cta.offset_of(local);
}

void store_async(void* to, const void* value, size_t bytes, void* mine, int rank,
                 const Where& where) {
  Machine& machine = Machine::current();
  MBarrierState& barrier =
      machine.mbarriers().find(map_shared(mine, rank, where), "store_async", where);
  uint64_t copy = 0;
  std::memcpy(&copy, value, bytes);
  machine.engines().submit(machine.engines().make_operation(
      "store_async", where, Machine::current_thread(),
      [=, &machine, &barrier](AsyncOperation& self) {
        // Not the asynchronous proxy: a store that completes later (PTX ISA, st.async).
        machine.memory().access_shared(to, bytes, true, self.access(Proxy::kGeneric));
        std::memcpy(to, &copy, bytes);
        machine.mbarriers().complete_bytes(barrier, static_cast<int64_t>(bytes), self, true);
      }));
}

}  // namespace pagoda::emulator
