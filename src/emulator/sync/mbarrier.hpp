// mbarriers: their arrivals and phases, and the instructions on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "emulator/machine/scheduler.hpp"
#include "emulator/memory/memory.hpp"
#include "emulator/report/reporter.hpp"
#include "emulator/sync/barrier_state.hpp"
#include "emulator/trace/recorder.hpp"

namespace pagoda::emulator {

struct AsyncOperation;

class MBarriers {
 public:
  MBarriers(Memory& memory, Scheduler& scheduler, Reporter& reporter, TraceRecorder& trace)
      : memory_(memory), scheduler_(scheduler), reporter_(reporter), trace_(trace) {}

  // The live barrier at an address; anything else is reported and ends the run.
  MBarrierState& find(const void* address, const char* primitive, const Where& where);
  // The barrier that an asynchronous copy will signal: reports one that the copy engine may not
  // see yet.
  MBarrierState& find_for_copy(const void* address, const char* primitive, const Where& where);
  // The live barrier that lies beside; nullptr: there is no other.
  [[nodiscard]] void* beside(const void* address) const;

  // `released.cta` is the arriving thread's; what an engine releases is at its barrier's CTA.
  void arrive(MBarrierState& barrier, uint32_t count, const Released& released);
  // `copy` has moved `bytes` and releases them: an engine at the barrier's CTA; a thread's store
  // (`is_store`) at the thread's, scope .cluster (PTX ISA, st.async).
  void complete_bytes(MBarrierState& barrier, int64_t bytes, const AsyncOperation& copy,
                      bool is_store = false);
  // Reports barriers of an ended CTA that still expect bytes.
  void report_end(const Cta& cta);

 private:
  void count_arrival(MBarrierState& barrier, uint64_t count, const char* primitive,
                     const Where& where, bool is_engine);
  void end_phase_if_complete(MBarrierState& barrier);

  Memory& memory_;
  Scheduler& scheduler_;
  Reporter& reporter_;
  TraceRecorder& trace_;
};

// --- instructions, for the executing thread ------------------------------------------------------

void mbarrier_init(void* address, uint32_t arrivals, const Where& where);
void mbarrier_invalidate(void* address, const Where& where);
// `arrivals` and `expected_bytes` may be 0. cta_rank -1: this CTA's barrier, scope .cta; else the
// barrier at the same offset in that CTA of the cluster, which it reaches some time later, scope
// .cluster.
void mbarrier_arrive(void* address, int cta_rank, uint32_t arrivals, uint32_t expected_bytes,
                     const char* primitive, const Where& where);
bool mbarrier_test(void* address, uint32_t parity, const Where& where);
void mbarrier_wait(void* address, uint32_t parity, Scope scope, const char* primitive,
                   const Where& where);
// Relaxed: the arrival releases only accesses to tensor memory before a tcgen05 fence, and the wait
// acquires only those.
void mbarrier_arrive_relaxed(void* address, int cta_rank, uint32_t expected_bytes,
                             const char* primitive, const Where& where);
void mbarrier_wait_relaxed(void* address, uint32_t parity, const char* primitive,
                           const Where& where);
void fence_mbarrier_init(const Where& where);
void name_mbarrier(void* address, std::string name);
// The barrier at which a mutant arrives, not at this one; nullptr: there is none, or the run has no
// mutants.
[[nodiscard]] void* barrier_beside(const void* address);

}  // namespace pagoda::emulator
