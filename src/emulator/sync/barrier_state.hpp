// The state of mbarriers and named barriers, and of threads that wait for them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "arch/layout/where.hpp"
#include "emulator/memory/shadow_memory.hpp"
#include "emulator/sync/scopes.hpp"
#include "emulator/sync/vector_clock.hpp"

namespace pagoda::emulator {

struct MBarrierState;
struct Thread;

// What a thread waits for, for the table of a deadlock.
struct Waiting {
  // "named barrier " and "3", for example; both empty where `barrier` and `phase` say it. A text
  // that is the same in every wait costs no allocation.
  const char* what = "";
  std::string which{};  // NOLINT(readability-redundant-member-init): may be left out
  const char* primitive = "";
  Where where;
  const MBarrierState* barrier = nullptr;
  uint32_t phase = 0;
};

// Arrivals at an mbarrier from one line of one role.
struct Arrivals {
  const char* role = "";
  const char* primitive = "";
  Where where;
  bool is_engine = false;       // bytes of a copy; `where` is its issue
  uint32_t last_phase = 0;      // the last phase that they counted for
  uint64_t count_in_phase = 0;  // in that phase
};

struct MBarrierState {
  uint32_t cta = 0;       // that owns its shared memory
  uint32_t expected = 0;  // arrivals a phase
  int64_t pending = 0;    // arrivals that this phase still expects
  int64_t pending_bytes = 0;
  uint32_t phase = 0;  // completed phases
  Clocks gathering;    // released by the arrivals of this phase
  Clocks completed;    // released by those of the last phase
  // The same by threads of other CTAs, which a wait must acquire at their scope.
  std::vector<Released> gathering_from_others, completed_from_others;
  // What relaxed arrivals release to relaxed waits: fenced accesses to tensor memory.
  Clocks relaxed_gathering, relaxed_completed;
  std::vector<Thread*> waiters;
  Stamp init;
  bool is_live = false;    // between init and invalidate
  bool is_fenced = false;  // fence_mbarrier_init or a proxy fence since init, by the same thread
  bool is_init_released = false;               // by fence_mbarrier_init
  std::optional<uint32_t> init_cluster_phase;  // that orders init before what follows a wait for it
  std::string name;                            // "k_full[1]", or its offset in shared memory
  uint64_t last_flow = 0;          // of the arrival that ended the last phase, for traces
  std::vector<Arrivals> arrivals;  // by line and role, for the table of a deadlock

  // The phase of `parity` has ended when the current phase has the other parity.
  [[nodiscard]] bool is_in_phase(uint32_t parity) const { return (phase & 1U) == parity; }
  [[nodiscard]] bool is_complete() const { return pending == 0 && pending_bytes == 0; }
  void start_next_phase();
  // Notes `count` arrivals, or bytes of an engine, for the table of a deadlock.
  void count_arrival(uint64_t count, const char* role, const char* primitive, const Where& where,
                     bool is_engine);
};

// The mbarriers in the shared memory of a CTA, by offset.
class MBarrierTable {
 public:
  static constexpr uint32_t kBytes = 8;  // of an mbarrier

  MBarrierState& at(uint32_t offset) { return barriers_[offset]; }  // made when first named
  [[nodiscard]] MBarrierState* find_live(uint32_t offset);          // nullptr: there is none
  [[nodiscard]] const auto& all() const { return barriers_; }

  // Memory at `offset` belongs to a barrier from here on.
  void note_init(uint32_t offset);
  // A live barrier that a write of `bytes` at `offset` would destroy; nullptr: there is none.
  [[nodiscard]] const MBarrierState* overlapped(uint32_t offset, size_t bytes) const;
  // For mutants: offset of the live barrier just before, or of the last; -1: there is no other. Not
  // the one after: two stages of a ring that swap their arrivals may be as good as before.
  [[nodiscard]] int64_t neighbour(uint32_t offset) const;
  // PTX ISA: a fence makes visible the inits of its own thread only.
  void fence_inits(Agent thread);
  // fence_mbarrier_init also releases them to a cluster barrier at which the thread arrives later,
  // even relaxed: at phase `phase` of it.
  void release_inits(Agent thread);
  void note_cluster_arrival(Agent thread, uint32_t phase);

 private:
  std::unordered_map<uint32_t, MBarrierState> barriers_;
  uint32_t begin_ = ~0U, end_ = 0;  // the bytes where barriers lie
};

struct NamedBarrierState {
  int expected = 0;  // threads a phase; 0 until the first arrives
  int arrived = 0;
  uint32_t phase = 0;
  Clocks gathering;
  Clocks completed;
  std::vector<Thread*> waiters;
  const char* name = nullptr;
};

}  // namespace pagoda::emulator
