// Clusters, CTAs, warpgroups, warps and threads: what each of them holds. What they do is in the
// parts of the machine that take them as arguments.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arch/layout/types.hpp"
#include "emulator/async/operation.hpp"
#include "emulator/machine/fiber.hpp"
#include "emulator/memory/shadow_memory.hpp"
#include "emulator/sync/barrier_state.hpp"
#include "emulator/sync/collective.hpp"
#include "emulator/sync/scopes.hpp"
#include "emulator/sync/vector_clock.hpp"

namespace pagoda::emulator {

class TensorMemory;  // memory/tensor_memory.hpp
struct CopyState;    // async/copies.hpp
class WgmmaEngine;   // async/wgmma.cpp
struct Cta;
struct Cluster;

enum class ThreadState : uint8_t { kReady, kBlocked, kPolling, kDone };

struct Thread {
  Cta* cta = nullptr;
  int index = 0;  // in the CTA
  int warp_size = 32;
  Agent agent = kNoAgent;
  uint32_t time = 1;
  std::shared_ptr<Clocks> clocks;
  ThreadState state = ThreadState::kReady;
  const char* role = "";
  const char* last_role = "";    // that it had, also after the role's end
  bool may_touch_global = true;  // of a dependent launch: after grid_dependency_wait
  Waiting waiting;
  std::unique_ptr<Fiber> fiber;

  // Fence-based synchronisation through relaxed atomics.
  // Clocks at the last thread_fence of .cta, .cluster and .gpu; a wider one replaces a narrower.
  std::array<std::shared_ptr<const Clocks>, 3> fence_released;
  std::vector<Released> seen_relaxed;  // acquired by the next thread_fence

  // The last word that it polled. Polling the same again is no progress.
  const void* polled = nullptr;
  uint64_t polled_value = 0;

  uint32_t cluster_arrivals = 0;
  uint32_t cluster_waits = 0;

  uint32_t lds_waited = 0;  // AMD: accesses up to this time are complete (s_waitcnt lgkmcnt(0))

  std::shared_ptr<CopyState> copies;  // nullptr until its first copy
  AsyncQueue remote_arrivals;         // in flight to mbarriers of other CTAs

  [[nodiscard]] int lane() const { return index % warp_size; }
  [[nodiscard]] int warp() const { return index / warp_size; }
  [[nodiscard]] int warpgroup() const { return index / 128; }
  [[nodiscard]] Access access(const char* primitive, const Where& where) const;
  [[nodiscard]] Access atomic_access(const char* primitive, const Where& where, Scope scope) const;

  Clocks& own_clocks();               // for writing: not shared with an operation in flight
  void tick();                        // its clock advances: what follows is a new epoch
  void release_into(Clocks& target);  // joins what it knows, then ticks
  void acquire(const Clocks& source);
};

struct Warp {
  Collective collective;
  int registers = 0;         // a thread
  int register_changes = 0;  // setmaxnreg executed, and the last of them
  Where register_change;
};

struct Warpgroup {
  std::shared_ptr<WgmmaEngine> wgmma;  // nullptr until its first wgmma
};

struct Cta {
  Cluster* cluster = nullptr;
  uint32_t index = 0;  // in the grid
  int rank = 0;        // in the cluster
  arch::Dim3 block_idx;
  std::unique_ptr<std::byte[]> shared_storage;
  std::byte* shared = nullptr;  // 1024-byte aligned
  size_t shared_bytes = 0;
  ShadowMemory shared_shadow{0};
  MBarrierTable mbarriers;
  std::array<NamedBarrierState, 16> named_barriers;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<Warpgroup> warpgroups;
  std::map<uint32_t, std::pair<uint32_t, std::string>> shared_names;  // offset -> bytes, name
  std::shared_ptr<TensorMemory> tensor_memory;                        // nullptr until its first use
  int running = 0;                                                    // threads that have not ended
  int free_registers = 0;                                             // released by setmaxnreg
  std::vector<Thread*> register_waiters;

  // Agents of asynchronous operations are used again, the one that is free for longest first.
  std::deque<uint32_t> free_slots;
  struct Issued {
    Agent agent = kNoAgent;
    uint32_t time = 0;
    const char* primitive = "";
    Where where;
    Thread* issuer = nullptr;
    bool is_detached = false;  // the CTA may end before a thread has waited for it
  };
  std::vector<Issued> slots;  // by slot: its last operation

  [[nodiscard]] bool owns(const void* address) const {
    const auto* byte = static_cast<const std::byte*>(address);
    return byte >= shared && byte <= shared + shared_bytes;
  }
  [[nodiscard]] uint32_t offset_of(const void* shared_address) const {
    return static_cast<uint32_t>(static_cast<const std::byte*>(shared_address) - shared);
  }
};

struct Cluster {
  std::vector<std::unique_ptr<Cta>> ctas;
  int arrived = 0;
  uint32_t phase = 0;
  Clocks gathering;  // of the cluster barrier
  Clocks completed;
  std::vector<Thread*> waiters;
  int running = 0;  // CTAs that have not ended
  int operations_in_flight = 0;
};

// "CTA 0, warp 4, lane 0, role load"
[[nodiscard]] std::string describe(const Thread& thread);
// "shared memory +20 (slot +20) of CTA 0"
[[nodiscard]] std::string describe_shared(const Cta& cta, uint32_t offset);

}  // namespace pagoda::emulator
