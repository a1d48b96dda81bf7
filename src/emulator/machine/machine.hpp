// The emulated machine: grid, clusters, CTAs, warps and threads, their memories and barriers, and
// the scheduler that runs them. `arch/emu/*.hpp` give the primitives their meaning on it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "arch/layout/types.hpp"
#include "emulator/machine/fiber.hpp"
#include "emulator/machine/mutation.hpp"
#include "emulator/machine/options.hpp"
#include "emulator/memory/shadow_memory.hpp"
#include "emulator/report/report.hpp"
#include "emulator/sync/vector_clock.hpp"

namespace pagoda::emulator {

class Machine;
class TensorMemory;  // tensor_memory.hpp
struct CopyState;    // copies.hpp
class WgmmaEngine;   // wgmma.cpp
struct Cta;
struct Cluster;
struct Thread;

// --- synchronisation objects -------------------------------------------------------------------

struct MBarrierState;

// What a thread waits for, for the table of a deadlock.
struct Waiting {
  std::string what;  // "the cluster barrier"; for an mbarrier the two last fields say it
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
  bool is_engine = false;       // bytes of a copy, or a commit; `where` is its issue
  uint32_t last_phase = 0;      // that they counted for
  uint64_t count_in_phase = 0;  // of it
};

// What a thread of one CTA has released at one scope. An acquire learns it where each of the two scopes
// includes the other's thread ("morally strong", PTX memory model).
struct Released {
  Clocks clocks;
  uint32_t cta = 0;
  Scope scope = Scope::kCta;
  const char* primitive = "";  // of the last release that was joined
  Where where;
};

// A release and an acquire that met, but of scopes too narrow to synchronise: for reports of races.
struct NarrowLink {
  Released released;
  uint32_t cta = 0;  // of the acquire, as what follows
  Scope scope = Scope::kCta;
  const char* primitive = "";
  Where where;
};

struct MBarrierState {
  uint32_t cta = 0;       // in whose shared memory it lies
  uint32_t expected = 0;  // arrivals a phase
  int64_t pending = 0;    // arrivals that this phase still wants
  int64_t pending_bytes = 0;
  uint32_t phase = 0;  // completed phases
  Clocks gathering;    // what the arrivals of this phase know
  Clocks completed;    // what those of the last phase knew
  // The same of arrivals by threads of other CTAs, which a wait must acquire at their scope.
  std::vector<Released> gathering_from_others, completed_from_others;
  // What relaxed arrivals tell, and relaxed waits learn: fenced accesses to tensor memory.
  Clocks relaxed_gathering, relaxed_completed;
  std::vector<Thread*> waiters;
  Stamp init;
  bool is_live = false;    // between init and invalidate
  bool is_fenced = false;  // fence_mbarrier_init or a proxy fence since init, by the same thread
  std::string name;        // "k_full[1]", or its offset in shared memory
  uint64_t last_flow = 0;  // of the arrival that ended the last phase, for traces
  std::vector<Arrivals> arrivals;  // by line and role, for the table of a deadlock
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

// Threads that execute one instruction together: the lanes of a warp, or a warpgroup.
struct Rendezvous {
  const char* primitive = nullptr;
  Where where;
  uint32_t lane_mask = 0;  // who takes part (warps); all (warpgroups)
  int arrived = 0;
  uint64_t generation = 0;
  std::array<void*, 128> arguments{};
  std::array<Thread*, 128> threads{};
};

// --- asynchronous operations -------------------------------------------------------------------

// An operation of an engine: issued by a thread, carried out later.
struct AsyncOperation {
  const char* primitive = "";
  Where where;
  Thread* issuer = nullptr;
  Cta* cta = nullptr;     // whose agent slot it uses
  Agent agent = kNobody;  // its accesses are this agent's
  uint32_t time = 0;
  uint64_t issued_step = 0;             // for traces
  std::shared_ptr<const Clocks> known;  // what the issuer knew
  bool is_detached = false;             // nobody need wait for it before the CTA ends
  bool may_touch_global = true;         // as its issuer might
  // Carries it out: accesses memory through Machine::async_read / async_write, signals barriers.
  std::function<void(AsyncOperation&)> run;

  [[nodiscard]] Access access(Proxy proxy = Proxy::kAsync) const;
  [[nodiscard]] Clocks completion() const;  // that it has happened
};

// Operations that one engine carries out in order. Different queues are unordered.
struct AsyncQueue {
  std::deque<std::unique_ptr<AsyncOperation>> operations;
  bool is_listed = false;
};

// --- the hierarchy -----------------------------------------------------------------------------

enum class ThreadState : uint8_t { kReady, kBlocked, kPolling, kDone };

struct Thread {
  Cta* cta = nullptr;
  int index = 0;  // in the CTA
  Agent agent = kNobody;
  uint32_t time = 1;
  std::shared_ptr<Clocks> clocks;
  ThreadState state = ThreadState::kReady;
  const char* role = "";
  const char* last_role = "";    // that it had, also after the role's end
  bool may_touch_global = true;  // of a dependent launch: after grid_dependency_wait
  Waiting waiting;
  std::unique_ptr<Fiber> fiber;

  // Fence-based synchronisation through relaxed atomics.
  // Knowledge at the last thread_fence of .cta, .cluster and .gpu; a wider one replaces the narrower.
  std::array<std::shared_ptr<const Clocks>, 3> fence_released;
  std::vector<Released> seen_relaxed;  // acquired by the next thread_fence

  // The last word that it polled. Polling the same again is no progress.
  const void* polled = nullptr;
  uint64_t polled_value = 0;

  uint32_t cluster_arrivals = 0;
  uint32_t cluster_waits = 0;

  std::shared_ptr<CopyState> copies;  // copies.cpp; nullptr until the first
  AsyncQueue remote_arrivals;         // on their way to mbarriers of other CTAs

  [[nodiscard]] int lane() const { return index % 32; }
  [[nodiscard]] int warp() const { return index / 32; }
  [[nodiscard]] int warpgroup() const { return index / 128; }
  [[nodiscard]] Access access(const char* primitive, const Where& where) const;
  [[nodiscard]] Access atomic_access(const char* primitive, const Where& where, Scope scope) const;
  Clocks& own_clocks();  // for writing: not shared with an operation in flight
};

struct Warp {
  Rendezvous rendezvous;
  int registers = 0;         // a thread
  int register_changes = 0;  // setmaxnreg executed, and the last of them
  Where register_change;
};

struct Warpgroup {
  Rendezvous rendezvous;
  std::shared_ptr<WgmmaEngine> wgmma;  // wgmma.cpp; nullptr until the first
};

struct Cta {
  Machine* machine = nullptr;
  Cluster* cluster = nullptr;
  uint32_t index = 0;  // in the grid
  int rank = 0;        // in the cluster
  arch::Dim3 block_idx;
  std::unique_ptr<std::byte[]> shared_storage;
  std::byte* shared = nullptr;  // 1024-byte aligned
  ShadowMemory shared_shadow{0};
  std::unordered_map<uint32_t, MBarrierState> mbarriers;  // by offset in shared memory
  uint32_t barriers_begin = ~0U, barriers_end = 0;        // where they lie
  std::array<NamedBarrierState, 16> named_barriers;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<Warpgroup> warpgroups;
  std::map<uint32_t, std::pair<uint32_t, std::string>> shared_names;  // offset -> bytes, name
  std::shared_ptr<TensorMemory> tensor_memory;
  int running = 0;         // threads that have not ended
  int free_registers = 0;  // given back by setmaxnreg
  std::vector<Thread*> register_waiters;

  // Agents of asynchronous operations are used again, the one that is free for longest first.
  std::deque<uint32_t> free_slots;
  struct Issued {
    Agent agent = kNobody;
    uint32_t time = 0;
    const char* primitive = "";
    Where where;
    Thread* issuer = nullptr;
    bool is_detached = false;  // nobody need wait for it
  };
  std::vector<Issued> slots;  // by slot: its last operation

  [[nodiscard]] bool owns(const void* address) const;
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

// --- global memory -----------------------------------------------------------------------------

enum class Permission : uint8_t { kRead, kReadWrite };

// A buffer of global memory that the launch may touch.
struct GlobalBuffer {
  std::string name;
  std::byte* begin = nullptr;
  size_t bytes = 0;
  Permission permission = Permission::kRead;
  bool is_written = true;  // by the host before the launch; otherwise reads of it are reported
  std::shared_ptr<ShadowMemory> shadow;
};

// SharedPtr::address() of a CTA's first byte. As on the chip (sm_90 and up), the window starts with
// 1 KiB that the system keeps.
inline constexpr uint32_t kSharedWindowStart = 1024;

// --- the launch --------------------------------------------------------------------------------

struct LaunchShape {
  std::string kernel;  // its name
  arch::Dim3 grid;
  int cluster_size = 1;
  int threads = 128;
  size_t shared_bytes = 0;
  int registers = 168;  // a thread, as compiled; setmaxnreg moves from there
  bool has_tensor_memory = false;
  bool is_dependent = false;  // starts before the launches before it have ended
};

struct Statistics {
  uint64_t steps = 0;     // calls of synchronising primitives, issues and completions
  uint64_t switches = 0;  // of fibers
  uint64_t accesses = 0;  // by primitives, not bytes
  uint64_t async_operations = 0;
  uint64_t multiply_adds = 0;  // of matrix instructions
  double seconds = 0;
};

struct Result {
  std::vector<Report> reports;
  Statistics statistics;
  [[nodiscard]] bool is_clean() const { return reports.empty(); }
};

class Machine {
 public:
  Machine(LaunchShape shape, std::vector<GlobalBuffer> buffers, Options options,
          std::function<void()> kernel);
  ~Machine();
  Result run();

  static Machine& current();  // of the executing thread
  static Thread& current_thread();

  [[nodiscard]] const LaunchShape& shape() const { return shape_; }
  [[nodiscard]] const Options& options() const { return options_; }
  Statistics& statistics() { return statistics_; }
  std::mt19937_64& random() { return random_; }

  // --- memory: check, remember; the caller moves the bytes ---
  // Shared memory of any CTA of the cluster. `address` is a host pointer into it.
  void access_shared(const void* address, size_t bytes, bool is_write, const Access& access,
                     bool may_be_unwritten = false);
  void check_barriers_kept(const Cta& cta, uint32_t offset, size_t bytes, const Stamp& stamp);
  void access_global(const void* address, size_t bytes, bool is_write, const Access& access);
  // By the executing thread, with the check of alignment.
  void thread_shared(const void* address, size_t bytes, bool is_write, const char* primitive,
                     const Where& where);
  void thread_global(const void* address, size_t bytes, bool is_write, const char* primitive,
                     const Where& where);
  // The same by an atomic operation.
  void thread_atomic(const void* address, bool is_shared, size_t bytes, bool is_write, Scope scope,
                     const char* primitive, const Where& where);
  [[nodiscard]] Cta* find_cta(const void* shared_address);  // that owns the address; nullptr: none
  [[nodiscard]] uint32_t shared_offset(const Cta& cta, const void* address) const;
  [[nodiscard]] GlobalBuffer* find_buffer(const void* address);

  // --- synchronisation ---
  // What the mutation under test does to this call: one of `kinds`, or nothing. Call it once for
  // each call of the primitive, before its effect.
  Mutation mutation_at(const char* primitive, const Where& where, Mutations kinds);
  // True: the mutation under test leaves this call out.
  bool is_dropped(const char* primitive, const Where& where) {
    return mutation_at(primitive, where, Mutation::kDrop) == Mutation::kDrop;
  }
  // A fault of the kernel itself, which all places that name it share. Not a step of the schedule.
  Mutation fault_at(const char* fault, const Where& where, Mutations kinds) {
    if (options_.mutation == nullptr) return Mutation::kNone;
    return options_.mutation->at_name(fault, where, kinds);
  }
  // The next scope that leaves out a thread of the launch that `scope` includes; itself: there is none.
  [[nodiscard]] Scope narrowed(Scope scope) const;
  [[nodiscard]] Mutations narrower(Scope scope) const {
    return narrowed(scope) == scope ? Mutations() : Mutation::kNarrow;
  }
  void tick(Thread& thread);  // the thread's clock advances: what follows is a new epoch
  void release_into(Thread& thread, Clocks& target);  // joins what the thread knows, then ticks
  void acquire_from(Thread& thread, const Clocks& source);
  // Joins what `clocks` knows into what was released by its CTA at its scope.
  static void release_to(std::vector<Released>& target, const Released& released);
  // What a thread learns of `source` at `scope`. Links that are too narrow are kept for reports.
  void acquire_at(Thread& thread, const std::vector<Released>& source, Scope scope,
                  const char* primitive, const Where& where);
  MBarrierState& mbarrier(const void* address, const char* primitive, const Where& where);
  // `released.cta` is the arriving thread's; what an engine releases is at its barrier's CTA.
  void mbarrier_arrive(MBarrierState& barrier, uint32_t count, const Released& released);
  void mbarrier_complete_bytes(MBarrierState& barrier, int64_t bytes, const Clocks& known);

  // All threads of a group execute one instruction: the last to arrive calls execute() for all.
  using Execute = std::function<void(Rendezvous&)>;
  void collective_warp(uint32_t lane_mask, const char* primitive, const Where& where,
                       void* arguments, const Execute& execute);
  void collective_warpgroup(const char* primitive, const Where& where, void* arguments,
                            const Execute& execute);

  // --- scheduling, from inside a thread ---
  void block(Waiting waiting);  // until wake()
  void wake(Thread& thread);
  void poll(const Waiting& waiting);  // lets others run; a deadlock when nobody makes progress
  void maybe_yield();                 // a place where another thread may come first (kRandom)
  void progress() { ++progress_; }    // something changed that another thread could wait for

  // --- asynchronous operations ---
  // Issues for the executing thread, or for `issuer`. `queue` == nullptr: unordered.
  void submit(std::unique_ptr<AsyncOperation> operation, AsyncQueue* queue = nullptr);
  // Two operations of which the second starts when the first is complete.
  void finish(AsyncQueue& queue);  // carries out all that it holds, now
  void submit_in_order(std::unique_ptr<AsyncOperation> first,
                       std::unique_ptr<AsyncOperation> second);
  std::unique_ptr<AsyncOperation> make_operation(const char* primitive, const Where& where,
                                                 Thread& issuer,
                                                 std::function<void(AsyncOperation&)> run);
  // One agent for all operations of a warpgroup's tensor core, which complete in order.
  [[nodiscard]] Agent warpgroup_agent(const Cta& cta, int warpgroup) const;

  // --- reports ---
  // For the executing thread, or for the issuer of an operation.
  void report(ReportKind kind, const char* primitive, const Where& where, std::string message,
              const Thread* who = nullptr);
  [[noreturn]] void fail(ReportKind kind, const char* primitive, const Where& where,
                         std::string message);  // reports and ends the run
  void report_race(const Conflict& conflict, const Access& access, bool is_write,
                   const std::string& place, size_t bytes);
  // While it lives, reports name `who` in place of the executing thread.
  class OnBehalfOf {
   public:
    OnBehalfOf(Machine& machine, const Thread* who)
        : machine_(machine), outer_(std::exchange(machine.acting_for_, who)) {}
    ~OnBehalfOf() { machine_.acting_for_ = outer_; }
    OnBehalfOf(const OnBehalfOf&) = delete;
    OnBehalfOf& operator=(const OnBehalfOf&) = delete;

   private:
    Machine& machine_;
    const Thread* outer_;
  };
  [[nodiscard]] std::string describe(const Thread& thread) const;
  [[nodiscard]] std::string describe_shared(const Cta& cta, uint32_t offset) const;

  // --- traces: trace.cpp; nothing happens without a tracer ---
  uint64_t next_step() { return ++step_; }
  [[nodiscard]] bool is_tracing(const Thread& thread) const {  // one track a warp
    return options_.tracer != nullptr && thread.lane() == 0;
  }
  void trace_begin(const Thread& thread, std::string_view name, const char* category);
  void trace_end(const Thread& thread, const char* category = "wait");
  // The executing thread or operation ends a phase. Returns the flow that waits of it end.
  uint64_t trace_arrival(const std::string& barrier);
  void trace_flow_end(const Thread& thread, uint64_t flow);
  void trace_async(const AsyncOperation& operation);

  // Atomics: what an access of the executing thread teaches and publishes (PTX memory model: release
  // and acquire patterns, and the fence-based ones).
  struct AtomicUse {
    Scope scope;
    bool reads, writes, acquires, releases;
  };
  void synchronise(const void* address, AtomicUse use, const char* primitive, const Where& where);
  void thread_fence(Scope scope, const Where& where);

 private:
  void start_clusters();
  void end_thread(Thread& thread);
  void end_cta(Cta& cta);
  void loop();
  Thread* next_ready();
  [[nodiscard]] bool starves(const Thread& thread) const;
  Thread* next_polling();
  bool complete_one_async();
  void complete(AsyncQueue& queue);
  AsyncQueue& make_queue();
  // Indices of agents: threads, their uses of tensor memory, warpgroups' engines, slots.
  [[nodiscard]] uint32_t first_engine() const;
  [[nodiscard]] uint32_t first_slot() const;
  void report_deadlock();  // deadlock.cpp
  void count_arrival(MBarrierState& barrier, uint64_t count, const char* primitive,
                     const Where& where, bool is_engine);
  [[nodiscard]] std::string nearest_end(const void* address) const;
  [[nodiscard]] uint32_t cluster_size() const { return static_cast<uint32_t>(shape_.cluster_size); }
  [[nodiscard]] std::string narrow_link(const Stamp& earlier) const;
  void end_time_slice(const char* primitive, const Where& where);

  LaunchShape shape_;
  Options options_;
  std::function<void()> kernel_;
  std::mt19937_64 random_;
  std::vector<GlobalBuffer> buffers_;
  std::vector<std::unique_ptr<Cluster>> clusters_;  // resident
  uint32_t next_cluster_ = 0;
  uint32_t cluster_count_ = 0;
  std::deque<Thread*> ready_;
  std::deque<Thread*> polling_;
  std::vector<AsyncQueue*> async_ready_;
  std::unordered_map<AsyncQueue*, std::unique_ptr<AsyncQueue>> own_queues_;
  std::unordered_map<const void*, std::vector<Released>> released_;  // by atomics, by address
  std::vector<NarrowLink> narrow_links_;                             // by the two lines
  Thread* running_ = nullptr;
  const Thread* acting_for_ = nullptr;
  AsyncOperation* completing_ = nullptr;
  uint64_t progress_ = 0;
  uint64_t step_ = 0;
  uint64_t next_flow_ = 0;
  uint64_t rounds_without_progress_ = 0;
  int switches_since_async_ = 0;
  uint32_t accesses_since_switch_ = 0;
  bool is_over_ = false;
  std::vector<Report> reports_;
  Statistics statistics_;
};

}  // namespace pagoda::emulator
