// The machine's life: start clusters, run threads and engines in the order that the mode chooses,
// end. What threads do to memory: memory_access.cpp; to each other: synchronisation.cpp.
#include "emulator/machine/machine.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "emulator/async/copies.hpp"
#include "emulator/async/wgmma.hpp"
#include "emulator/memory/register_file.hpp"
#include "emulator/memory/tensor_memory.hpp"

namespace pagoda::emulator {
namespace {

thread_local Machine* current_machine = nullptr;

// Slots of asynchronous operations, a CTA; more when more are in flight. A slot is used again after
// at least so many other operations: a missing wait that old goes unseen.
constexpr uint32_t kAsyncSlots = 256;
constexpr size_t kSharedAlignment = 1024;

// Ends the run from outside a thread.
struct RunOver {};

}  // namespace

Clocks& Thread::own_clocks() {
  if (clocks.use_count() > 1) clocks = std::make_shared<Clocks>(*clocks);
  return *clocks;
}

Access Thread::access(const char* primitive, const Where& where) const {
  return {.stamp = {.agent = agent,
                    .time = time,
                    .primitive = primitive,
                    .where = where,
                    .proxy = Proxy::kGeneric},
          .clocks = clocks.get(),
          .may_touch_global = may_touch_global};
}

Access Thread::atomic_access(const char* primitive, const Where& where, Scope scope) const {
  Access made = access(primitive, where);
  made.stamp.is_atomic = true;
  made.stamp.scope = scope;
  made.cluster_size = static_cast<uint32_t>(cta->cluster->ctas.size());
  return made;
}

Access AsyncOperation::access(Proxy proxy) const {
  return {.stamp = {.agent = agent,
                    .time = time,
                    .primitive = primitive,
                    .where = where,
                    .proxy = proxy},
          .clocks = known.get(),
          .may_touch_global = may_touch_global};
}

// Nothing else that its issuer did, and nothing for the asynchronous proxy: what a cp.async or st.async
// wrote needs a proxy fence like any ordinary write.
Clocks AsyncOperation::completion() const {
  Clocks done;
  done.generic.set(agent, time);
  return done;
}

bool Cta::owns(const void* address) const {
  const auto* byte = static_cast<const std::byte*>(address);
  return byte >= shared && byte <= shared + machine->shape().shared_bytes;
}

Machine::Machine(LaunchShape shape, std::vector<GlobalBuffer> buffers, Options options,
                 std::function<void()> kernel)
    : shape_(std::move(shape)),
      options_(options),
      kernel_(std::move(kernel)),
      random_(options.seed),
      buffers_(std::move(buffers)) {
  for (GlobalBuffer& buffer : buffers_) {
    if (buffer.permission == Permission::kReadWrite) {
      buffer.shadow = std::make_shared<ShadowMemory>(buffer.bytes);
    }
  }
  const uint32_t ctas = static_cast<uint32_t>(shape_.grid.x * shape_.grid.y * shape_.grid.z);
  cluster_count_ = ctas / static_cast<uint32_t>(shape_.cluster_size);
}

Machine::~Machine() {
  // Unwinding a fiber may run destructors that ask for the machine.
  Machine* const previous = std::exchange(current_machine, this);
  is_over_ = true;
  clusters_.clear();
  current_machine = previous;
}

Machine& Machine::current() { return *current_machine; }
Thread& Machine::current_thread() { return *current_machine->running_; }

Result Machine::run() {
  Machine* const previous = std::exchange(current_machine, this);
  const auto start = std::chrono::steady_clock::now();
  if (shape_.grid.x % shape_.cluster_size != 0) {
    report(ReportKind::kProtocol, "launch", Where::current(),
           "grid.x = " + std::to_string(shape_.grid.x) + " is not a multiple of the cluster's " +
               std::to_string(shape_.cluster_size) + " CTAs");
  } else {
    try {
      loop();
    } catch (const RunOver&) {
    }
  }
  statistics_.steps = step_;
  statistics_.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  current_machine = previous;
  return {std::move(reports_), statistics_};
}

// --- start and end -----------------------------------------------------------------------------

void Machine::start_clusters() {
  while (next_cluster_ < cluster_count_ &&
         clusters_.size() < static_cast<size_t>(options_.resident_clusters)) {
    auto cluster = std::make_unique<Cluster>();
    for (int rank = 0; rank < shape_.cluster_size; ++rank) {
      auto cta = std::make_unique<Cta>();
      cta->machine = this;
      cta->cluster = cluster.get();
      cta->index =
          next_cluster_ * static_cast<uint32_t>(shape_.cluster_size) + static_cast<uint32_t>(rank);
      cta->rank = rank;
      const auto index = static_cast<int32_t>(cta->index);
      cta->block_idx = {index % shape_.grid.x, index / shape_.grid.x % shape_.grid.y,
                        index / shape_.grid.x / shape_.grid.y};
      cta->shared_storage = std::make_unique<std::byte[]>(shape_.shared_bytes + kSharedAlignment);
      void* base = cta->shared_storage.get();
      size_t space = shape_.shared_bytes + kSharedAlignment;
      cta->shared =
          static_cast<std::byte*>(std::align(kSharedAlignment, shape_.shared_bytes, base, space));
      // Poison: as fp32, bf16, fp16 and e4m3 alike a NaN.
      std::memset(cta->shared, 0xff, shape_.shared_bytes);
      cta->shared_shadow = ShadowMemory(shape_.shared_bytes);
      cta->slots.resize(kAsyncSlots);
      for (uint32_t slot = 0; slot < kAsyncSlots; ++slot) cta->free_slots.push_back(slot);
      cta->threads.resize(static_cast<size_t>(shape_.threads));
      cta->warps.resize(static_cast<size_t>(shape_.threads + 31) / 32);
      cta->warpgroups.resize(static_cast<size_t>(shape_.threads + 127) / 128);
      for (Warp& warp : cta->warps) warp.registers = shape_.registers;
      cta->running = shape_.threads;
      for (int i = 0; i < shape_.threads; ++i) {
        Thread& thread = cta->threads[static_cast<size_t>(i)];
        thread.cta = cta.get();
        thread.index = i;
        thread.may_touch_global = !shape_.is_dependent;
        thread.agent = make_agent(cta->index, static_cast<uint32_t>(i));
        thread.clocks = std::make_shared<Clocks>();
        thread.clocks->generic.set(thread.agent, thread.time);
        thread.fiber = std::make_unique<Fiber>([this] { kernel_(); });
        ready_.push_back(&thread);
      }
      cluster->ctas.push_back(std::move(cta));
    }
    cluster->running = shape_.cluster_size;
    clusters_.push_back(std::move(cluster));
    ++next_cluster_;
  }
}

void Machine::end_thread(Thread& thread) {
  thread.state = ThreadState::kDone;
  if (const char* copies = copies_in_flight(thread)) {
    report(ReportKind::kProtocol, "exit", thread.waiting.where,
           std::string("the thread ended with ") + copies, &thread);
  }
  wgmma_end_thread(thread);
  if (--thread.cta->running == 0) end_cta(*thread.cta);
}

void Machine::end_cta(Cta& cta) {
  register_budget_end_cta(*this, cta);
  Cluster& cluster = *cta.cluster;
  if (--cluster.running > 0) return;
  // Shared memory goes to another CTA now: nothing may still be on its way there.
  for (const auto& member : cluster.ctas) {
    if (member->tensor_memory) member->tensor_memory->report_end(*this);
    for (const auto& [offset, barrier] : member->mbarriers) {
      if (barrier.pending_bytes == 0) continue;
      report(ReportKind::kProtocol, barrier.init.primitive, barrier.init.where,
             "the CTA ended while mbarrier " + barrier.name + " counts " +
                 std::to_string(barrier.pending_bytes) + " pending bytes",
             &member->threads[0]);
    }
    for (const Cta::Issued& issued : member->slots) {
      if (issued.agent == kNobody || issued.is_detached) continue;
      const auto has_observed = [&](const Thread& thread) {
        return thread.clocks->generic.get(issued.agent) >= issued.time ||
               thread.clocks->tensor.get(issued.agent) >= issued.time;
      };
      bool is_observed = false;
      for (const auto& other : cluster.ctas) {
        is_observed =
            is_observed || std::any_of(other->threads.begin(), other->threads.end(), has_observed);
      }
      if (!is_observed) {
        report(ReportKind::kProtocol, issued.primitive, issued.where,
               "the CTA ended without any thread having waited for this operation", issued.issuer);
      }
    }
  }
}

// --- the loop ----------------------------------------------------------------------------------

// With odd seeds one lane of one warp runs only when nothing else can: the lanes of a warp need not
// keep together. Neighbouring CTAs have it in different warps, so that few seeds reach all.
bool Machine::starves(const Thread& thread) const {
  if (options_.seed % 2 == 0) return false;
  const size_t warps = thread.cta->warps.size();
  const uint64_t turn = options_.seed / 2 + thread.cta->index * (warps / 2);
  return static_cast<uint64_t>(thread.warp()) == turn % warps &&
         static_cast<uint64_t>(thread.lane()) == (turn * 2654435761U >> 13) % 32;
}

Thread* Machine::next_ready() {
  if (ready_.empty()) return nullptr;
  if (options_.mode == Mode::kRandom) {
    size_t chosen = random_() % ready_.size();
    if (starves(*ready_[chosen])) {
      for (size_t i = 0; i < ready_.size() && starves(*ready_[chosen]); ++i) {
        chosen = (chosen + 1) % ready_.size();
      }
      if (starves(*ready_[chosen]) && !async_ready_.empty()) return nullptr;
    }
    std::swap(ready_[chosen], ready_.back());
    Thread* const thread = ready_.back();
    ready_.pop_back();
    return thread;
  }
  Thread* const thread = ready_.front();
  ready_.pop_front();
  return thread;
}

void Machine::complete(AsyncQueue& queue) {
  const std::unique_ptr<AsyncOperation> operation = std::move(queue.operations.front());
  queue.operations.pop_front();
  next_step();
  progress();
  const OnBehalfOf issuer(*this, operation->issuer);
  AsyncOperation* const outer = std::exchange(completing_, operation.get());
  operation->run(*operation);
  completing_ = outer;
  trace_async(*operation);
  --operation->cta->cluster->operations_in_flight;
  const uint32_t index = agent_index(operation->agent);
  if (index >= first_slot()) operation->cta->free_slots.push_back(index - first_slot());
}

uint32_t Machine::first_engine() const {
  return static_cast<uint32_t>(shape_.threads) * (shape_.has_tensor_memory ? 2U : 1U);
}

uint32_t Machine::first_slot() const {
  return first_engine() + static_cast<uint32_t>(shape_.threads + 127) / 128;
}

Agent Machine::warpgroup_agent(const Cta& cta, int warpgroup) const {
  return make_agent(cta.index, first_engine() + static_cast<uint32_t>(warpgroup));
}

bool Machine::complete_one_async() {
  if (async_ready_.empty()) return false;
  const size_t chosen = options_.mode == Mode::kRoundRobin ? 0 : random_() % async_ready_.size();
  AsyncQueue* const queue = async_ready_[chosen];
  complete(*queue);
  if (queue->operations.empty()) {
    queue->is_listed = false;
    async_ready_.erase(async_ready_.begin() + static_cast<std::ptrdiff_t>(chosen));
    own_queues_.erase(queue);
  }
  return true;
}

Thread* Machine::next_polling() {
  Thread* const thread = polling_.front();
  polling_.pop_front();
  thread->state = ThreadState::kReady;
  return thread;
}

void Machine::loop() {
  constexpr int kSwitchesPerAsync = 16;   // round-robin: one operation completes every so many
  constexpr uint64_t kMaxIdlePolls = 64;  // rounds over all polling threads without progress
  while (!is_over_) {
    std::erase_if(clusters_, [&](const auto& cluster) {
      if (cluster->running != 0 || cluster->operations_in_flight != 0) return false;
      for (const auto& cta : cluster->ctas) {  // another CTA may get the same host memory
        std::erase_if(released_, [&](const auto& word) { return cta->owns(word.first); });
      }
      return true;
    });
    start_clusters();
    if (clusters_.empty()) return;

    const bool is_async_turn =
        (options_.mode == Mode::kRandom && random_() % 8 == 0) ||
        (options_.mode == Mode::kRoundRobin && ++switches_since_async_ >= kSwitchesPerAsync);
    if (is_async_turn) {
      switches_since_async_ = 0;
      if (complete_one_async()) continue;
    }
    // Threads that poll come when nothing else can, and by chance before.
    const bool polls = options_.mode == Mode::kRandom && !polling_.empty() && random_() % 8 == 0;
    Thread* thread = polls ? next_polling() : next_ready();
    if (thread == nullptr && complete_one_async()) continue;
    if (thread == nullptr && !polling_.empty() &&
        rounds_without_progress_ < kMaxIdlePolls * polling_.size()) {
      thread = next_polling();
      ++rounds_without_progress_;
    }
    if (thread == nullptr) {
      report_deadlock();
      return;
    }
    const uint64_t before = progress_;
    ++statistics_.switches;
    accesses_since_switch_ = 0;
    running_ = thread;
    thread->fiber->resume();
    running_ = nullptr;
    if (progress_ != before) rounds_without_progress_ = 0;
    if (!is_over_ && thread->fiber->is_done()) {
      progress();
      rounds_without_progress_ = 0;
      end_thread(*thread);
    }
  }
}

void Machine::block(Waiting waiting) {
  Thread& thread = *running_;
  thread.waiting = std::move(waiting);
  thread.state = ThreadState::kBlocked;
  Fiber::suspend();
}

void Machine::wake(Thread& thread) {
  if (thread.state != ThreadState::kBlocked) return;
  thread.state = ThreadState::kReady;
  ready_.push_back(&thread);
}

void Machine::poll(const Waiting& waiting) {
  Thread& thread = *running_;
  thread.waiting = waiting;
  thread.state = ThreadState::kPolling;
  polling_.push_back(&thread);
  Fiber::suspend();
}

void Machine::maybe_yield() {
  Thread& thread = *running_;
  if (options_.mode != Mode::kRandom || (!starves(thread) && random_() % 4 != 0)) return;
  ready_.push_back(&thread);
  Fiber::suspend();
}

// --- asynchronous operations -------------------------------------------------------------------

std::unique_ptr<AsyncOperation> Machine::make_operation(const char* primitive, const Where& where,
                                                        Thread& issuer,
                                                        std::function<void(AsyncOperation&)> run) {
  auto operation = std::make_unique<AsyncOperation>();
  Cta& cta = *issuer.cta;
  operation->primitive = primitive;
  operation->where = where;
  operation->issuer = &issuer;
  operation->cta = &cta;
  operation->may_touch_global = issuer.may_touch_global;
  operation->run = std::move(run);
  if (cta.free_slots.empty()) {
    if (first_slot() + cta.slots.size() >= 1U << kAgentBits) {
      fail(ReportKind::kProtocol, primitive, where,
           std::to_string(cta.slots.size()) + " asynchronous operations of one CTA are in flight");
    }
    cta.free_slots.push_back(static_cast<uint32_t>(cta.slots.size()));
    cta.slots.emplace_back();
  }
  const uint32_t slot = cta.free_slots.front();
  cta.free_slots.pop_front();
  Cta::Issued& issued = cta.slots[slot];
  issued = {.agent = make_agent(cta.index, first_slot() + slot),
            .time = issued.time + 1,
            .primitive = primitive,
            .where = where,
            .issuer = &issuer};
  operation->agent = issued.agent;
  operation->time = issued.time;
  operation->known = issuer.clocks;
  tick(issuer);
  return operation;
}

void Machine::submit(std::unique_ptr<AsyncOperation> operation, AsyncQueue* queue) {
  ++statistics_.async_operations;
  Cta& cta = *operation->cta;
  ++cta.cluster->operations_in_flight;
  const uint32_t index = agent_index(operation->agent);
  if (index >= first_slot()) cta.slots[index - first_slot()].is_detached = operation->is_detached;
  progress();
  operation->issued_step = next_step();
  if (queue == nullptr) queue = &make_queue();
  queue->operations.push_back(std::move(operation));
  if (options_.mode == Mode::kEager) {
    complete(*queue);
    if (!queue->is_listed && queue->operations.empty()) {
      own_queues_.erase(queue);
    }
    return;
  }
  if (!queue->is_listed) {
    queue->is_listed = true;
    async_ready_.push_back(queue);
  }
}

void Machine::finish(AsyncQueue& queue) {
  while (!queue.operations.empty()) complete(queue);
  if (std::exchange(queue.is_listed, false)) std::erase(async_ready_, &queue);
}

void Machine::submit_in_order(std::unique_ptr<AsyncOperation> first,
                              std::unique_ptr<AsyncOperation> second) {
  if (options_.mode == Mode::kEager) {
    submit(std::move(first));
    submit(std::move(second));
    return;
  }
  AsyncQueue& queue = make_queue();
  submit(std::move(first), &queue);
  submit(std::move(second), &queue);
}

AsyncQueue& Machine::make_queue() {
  auto queue = std::make_unique<AsyncQueue>();
  AsyncQueue& made = *queue;
  own_queues_.emplace(&made, std::move(queue));
  return made;
}

// --- reports -----------------------------------------------------------------------------------

std::string Machine::describe(const Thread& thread) const {
  std::string text = "CTA " + std::to_string(thread.cta->index) + ", warp " +
                     std::to_string(thread.warp()) + ", lane " + std::to_string(thread.lane());
  const char* const role = thread.state == ThreadState::kDone ? thread.last_role : thread.role;
  if (*role != '\0') text += std::string(", role ") + role;
  return text;
}

void Machine::report(ReportKind kind, const char* primitive, const Where& where,
                     std::string message, const Thread* who) {
  if (who == nullptr) who = acting_for_ != nullptr ? acting_for_ : running_;
  const std::string_view path = where.file_name();
  Report report{.kind = kind,
                .kernel = shape_.kernel,
                .who = who != nullptr ? describe(*who) : "the launch",
                .primitive = primitive,
                .file = std::string(path.substr(path.find_last_of('/') + 1)),
                .line = where.line(),
                .message = std::move(message),
                .other_file = {},
                .mode = options_.mode,
                .seed = options_.seed};
  // One finding a place: the other lanes and iterations say the same.
  const bool is_known = std::any_of(reports_.begin(), reports_.end(), [&](const Report& earlier) {
    return earlier.kind == kind && earlier.line == report.line && earlier.file == report.file &&
           earlier.primitive == report.primitive;
  });
  if (is_known) return;
  reports_.push_back(std::move(report));
  if (reports_.size() >= static_cast<size_t>(options_.max_reports)) is_over_ = true;
}

void Machine::fail(ReportKind kind, const char* primitive, const Where& where,
                   std::string message) {
  report(kind, primitive, where, std::move(message));
  is_over_ = true;
  if (running_ == nullptr) throw RunOver{};
  completing_ = nullptr;
  for (;;) Fiber::suspend();
}

}  // namespace pagoda::emulator
