// Tensor memory: allocation, loads and stores, waits and fences. Products and copies:
// tensor_product.cpp.
#include "emulator/memory/tensor_memory.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "emulator/machine/machine.hpp"
#include "emulator/report/place.hpp"

namespace pagoda::emulator {
namespace {

using arch::kTmemColumns;
using arch::kTmemLanes;
using arch::TmemIndex;
using arch::TmemPtr;
using arch::TmemShape;

constexpr uint32_t kPoison = ~0U;  // as fp32, bf16, fp16 and e4m3 alike a NaN
constexpr size_t kWordBytes = 4;

size_t offset_of(int lane, int column) {
  return static_cast<size_t>(lane * kTmemColumns + column) * kWordBytes;
}

TensorMemory& memory_of(const Thread& thread, const char* primitive, const Where& where,
                        int cta_group = 0) {
  return TensorMemory::of(*thread.cta, cta_group, primitive, where);
}

}  // namespace

// --- the memory --------------------------------------------------------------------------------

TensorMemory::TensorMemory(Cta& cta)
    : cta_(cta),
      words_(static_cast<size_t>(kTmemLanes) * kTmemColumns, kPoison),
      shadow_(words_.size() * kWordBytes),
      warps_(cta.warps.size()) {}

TensorMemory& TensorMemory::of(Cta& cta, int cta_group, const char* primitive, const Where& where) {
  Machine& machine = Machine::current();
  if (!machine.shape().has_tensor_memory) {
    machine.reporter().fail(ReportKind::kProtocol, primitive, where,
                            "the launch has no tensor memory (kHasTensorMemory)");
  }
  if (cta_group == 2 && machine.shape().cluster_size % 2 != 0) {
    machine.reporter().fail(ReportKind::kProtocol, primitive, where,
                            "cta_group 2 in clusters of " +
                                std::to_string(machine.shape().cluster_size) +
                                " CTAs: the CTA has no peer");
  }
  if (!cta.tensor_memory) cta.tensor_memory = std::make_shared<TensorMemory>(cta);
  TensorMemory& memory = *cta.tensor_memory;
  if (cta_group != 0 && memory.cta_group_ == 0) {
    memory.cta_group_ = cta_group;
    memory.cta_group_where_ = where;
  } else if (cta_group != 0 && memory.cta_group_ != cta_group) {
    machine.reporter().fail(ReportKind::kProtocol, primitive, where,
                            "cta_group " + std::to_string(cta_group) + " after " +
                                std::to_string(memory.cta_group_) + " at " +
                                line_of(memory.cta_group_where_) + ": a kernel uses one value");
  }
  return memory;
}

std::string TensorMemory::place(size_t offset) const {
  const size_t word = offset / kWordBytes;
  return "tensor memory lane " + std::to_string(word / kTmemColumns) + ", column " +
         std::to_string(word % kTmemColumns) + " of CTA " + std::to_string(cta_.index);
}

void TensorMemory::check_columns(int column, int columns, const char* primitive,
                                 const Where& where) {
  Machine& machine = Machine::current();
  const auto text = [&] {
    return "columns " + std::to_string(column) + ".." + std::to_string(column + columns - 1);
  };
  if (column < 0 || column + columns > kTmemColumns) {
    machine.reporter().fail(
        ReportKind::kBounds, primitive, where,
        text() + " lie outside of tensor memory's " + std::to_string(kTmemColumns));
  }
  const Column& first = columns_[static_cast<size_t>(column)];
  const Column& last = columns_[static_cast<size_t>(column + columns - 1)];
  if (first.allocation != 0 && first.allocation == last.allocation) return;  // they are contiguous
  for (int i = column; i < column + columns; ++i) {
    const Column& state = columns_[static_cast<size_t>(i)];
    if (state.allocation == 0) {
      machine.reporter().report(ReportKind::kProtocol, primitive, where,
                                text() + " of tensor memory: column " + std::to_string(i) +
                                    (state.was_freed ? " was freed at " + line_of(state.where)
                                                     : std::string(" is not allocated")));
      return;
    }
    if (state.allocation != first.allocation) {
      machine.reporter().report(
          ReportKind::kProtocol, primitive, where,
          text() + " of tensor memory reach from one allocation into another, of " +
              line_of(state.where));
      return;
    }
  }
}

uint32_t* TensorMemory::read(int lane, int column, int columns, const Access& access,
                             bool may_be_unwritten) {
  Machine& machine = Machine::current();
  const Stamp& stamp = access.stamp;
  check_columns(column, columns, stamp.primitive, stamp.where);
  machine.memory().count_access();
  const size_t offset = offset_of(lane, column);
  const size_t bytes = static_cast<size_t>(columns) * kWordBytes;
  if (!may_be_unwritten) check_written(lane, column, columns, access);
  if (const auto conflict = shadow_.read(offset, bytes, access)) {
    machine.memory().report_race(*conflict, access, false, place(conflict->offset), bytes);
  }
  return word(lane, column);
}

void TensorMemory::check_written(int lane, int column, int columns, const Access& access) const {
  const auto unwritten =
      shadow_.first_unwritten(offset_of(lane, column), static_cast<size_t>(columns) * kWordBytes);
  if (!unwritten) return;
  Machine::current().reporter().report(ReportKind::kUninitialised, access.stamp.primitive,
                                       access.stamp.where,
                                       "read of " + place(*unwritten) + ", which nothing wrote");
}

uint32_t* TensorMemory::write(int lane, int column, int columns, const Access& access) {
  Machine& machine = Machine::current();
  check_columns(column, columns, access.stamp.primitive, access.stamp.where);
  machine.memory().count_access();
  const size_t bytes = static_cast<size_t>(columns) * kWordBytes;
  if (const auto conflict = shadow_.write(offset_of(lane, column), bytes, access)) {
    machine.memory().report_race(*conflict, access, true, place(conflict->offset), bytes);
  }
  return word(lane, column);
}

bool TensorMemory::is_free(int column, int columns) const {
  const auto begin = columns_.begin() + column;
  return std::all_of(begin, begin + columns, [](const Column& c) { return c.allocation == 0; });
}

int TensorMemory::find_free(int columns) const {
  for (int column = 0; column + columns <= kTmemColumns; column += 32) {
    if (is_free(column, columns)) return column;
  }
  return -1;
}

void TensorMemory::allocate(int column, int columns, const Where& where) {
  ++allocations_;
  for (int i = column; i < column + columns; ++i) {
    columns_[static_cast<size_t>(i)] = {allocations_, false, where};
  }
}

void TensorMemory::free(int column, int columns, const Clocks& known, const Where& where) {
  constexpr const char* kPrimitive = "tmem_free";
  Machine& machine = Machine::current();
  check_columns(column, 1, kPrimitive, where);
  const int number = columns_[static_cast<size_t>(column)].allocation;
  if (number == 0) return;
  const auto size = std::count_if(columns_.begin(), columns_.end(),
                                  [&](const Column& c) { return c.allocation == number; });
  const bool is_start =
      column == 0 || columns_[static_cast<size_t>(column) - 1].allocation != number;
  if (!is_start || size != columns) {
    machine.reporter().fail(
        ReportKind::kProtocol, kPrimitive, where,
        "free of " + std::to_string(columns) + " columns from column " + std::to_string(column) +
            ", which is not what was allocated: " + std::to_string(size) + " columns at " +
            line_of(columns_[static_cast<size_t>(column)].where));
  }
  // All earlier accesses to the columns must happen before the free.
  const Access access{.stamp = {.agent = Machine::current_thread().agent,
                                .time = Machine::current_thread().time,
                                .primitive = kPrimitive,
                                .where = where,
                                .proxy = Proxy::kTensor},
                      .clocks = &known};
  const size_t bytes = static_cast<size_t>(columns) * kWordBytes;
  for (int lane = 0; lane < kTmemLanes; ++lane) {
    if (const auto conflict = shadow_.write(offset_of(lane, column), bytes, access)) {
      machine.memory().report_race(*conflict, access, true, place(conflict->offset), bytes);
    }
    shadow_.forget(offset_of(lane, column), bytes);
    std::fill_n(word(lane, column), columns, kPoison);
  }
  for (int i = column; i < column + columns; ++i) {
    columns_[static_cast<size_t>(i)] = {0, true, where};
  }
  for (Thread* waiter : std::exchange(waiters, {})) machine.scheduler().wake(*waiter);
}

TensorMemory::Issuer& TensorMemory::issuer(Thread& thread) {
  Issuer& issuer = issuers_[thread.index];
  issuer.thread = &thread;
  return issuer;
}

TensorMemory::Pipeline& TensorMemory::pipeline(Issuer& issuer, const std::string& key) {
  const auto found = std::find_if(issuer.pipelines.begin(), issuer.pipelines.end(),
                                  [&](const Pipeline& one) { return one.key == key; });
  if (found != issuer.pipelines.end()) return *found;
  // With more pipelines than agents, which no sound kernel has, they share the last agent.
  const size_t index = 2 * warps_.size() + pipelines_++;
  Pipeline& made = issuer.pipelines.emplace_back();
  made.key = key;
  made.agent = agent(static_cast<int>(std::min(index, cta_.threads.size() - 1)));
  return made;
}

std::string TensorMemory::describe(Agent agent) const {
  for (const auto& [thread, issuer] : issuers_) {
    for (const Pipeline& pipeline : issuer.pipelines) {
      if (pipeline.agent == agent) return "issued by " + emulator::describe(*issuer.thread);
    }
  }
  const size_t warp = (agent_index(agent) - cta_.threads.size()) % warps_.size();
  const Thread& first = cta_.threads[32 * warp];
  std::string text = "CTA " + std::to_string(cta_.index) + ", warp " + std::to_string(warp);
  if (*first.role != '\0') text += std::string(", role ") + first.role;
  return text;
}

void TensorMemory::report_end(Reporter& reporter) const {
  const auto report = [&](const char* primitive, const Where& where, const std::string& message,
                          size_t thread) {
    reporter.report(ReportKind::kProtocol, primitive, where, message, &cta_.threads[thread]);
  };
  int previous = 0;
  for (const Column& column : columns_) {
    if (column.allocation != 0 && column.allocation != previous) {
      report("tmem_allocate", column.where,
             "the CTA ended without freeing this tensor memory: the next allocation never returns",
             0);
    }
    previous = column.allocation;
  }
  const auto was_waited_for = [this](const Pipeline& issued) {
    const auto has_waited = [&issued](const Thread& other) {
      return other.clocks->generic.get(issued.agent) >= issued.time;
    };
    const auto& members = cta_.cluster->ctas;
    return std::any_of(members.begin(), members.end(), [&](const auto& member) {
      return std::any_of(member->threads.begin(), member->threads.end(), has_waited);
    });
  };
  for (const auto& [thread, issuer] : issuers_) {
    for (const Pipeline& pipeline : issuer.pipelines) {
      if (was_waited_for(pipeline)) continue;
      report(pipeline.primitive, pipeline.where,
             "the CTA ended without any thread having waited for this operation",
             static_cast<size_t>(thread));
    }
  }
  for (size_t i = 0; i < warps_.size(); ++i) {
    if (!warps_[i].loads.empty()) {
      report("tmem_load", warps_[i].loads.front().where,
             "the warp ended with a load in flight that it did not wait for (tmem_wait_load)",
             i * 32);
    }
    if (warps_[i].store) {
      report("tmem_store", *warps_[i].store,
             "the warp ended with a store in flight that it did not wait for (tmem_wait_store)",
             i * 32);
    }
  }
}

// --- allocation --------------------------------------------------------------------------------

namespace {

// Allocates in both CTAs when both have requested it and the same columns are free in both.
int allocate_pair(Thread& thread, TensorMemory& mine, int columns, const Where& where) {
  Machine& machine = Machine::current();
  Cta& peer_cta = *thread.cta->cluster->ctas[static_cast<size_t>(thread.cta->rank ^ 1)];
  TensorMemory& peer = TensorMemory::of(peer_cta, 2, "tmem_allocate", where);
  const Waiting for_columns{
      .what = "free columns of tensor memory", .primitive = "tmem_allocate", .where = where};
  if (peer.pair_request.columns == 0) {
    mine.pair_request = {.columns = columns, .waiter = &thread, .result = -1};
    while (mine.pair_request.result < 0) {
      machine.scheduler().block(
          {.what = "the allocation of tensor memory by the other CTA of the pair",
           .primitive = "tmem_allocate",
           .where = where});
    }
    const int column = mine.pair_request.result;
    mine.pair_request = {};
    return column;
  }
  if (peer.pair_request.columns != columns) {
    machine.reporter().fail(
        ReportKind::kProtocol, "tmem_allocate", where,
        "the two CTAs of a pair allocate different numbers of columns: " + std::to_string(columns) +
            " and " + std::to_string(peer.pair_request.columns));
  }
  for (;;) {
    for (int column = 0; column + columns <= kTmemColumns; column += 32) {
      if (mine.is_free(column, columns) && peer.is_free(column, columns)) {
        mine.allocate(column, columns, where);
        peer.allocate(column, columns, where);
        Thread* const waiter = peer.pair_request.waiter;
        peer.pair_request.result = column;
        peer.pair_request.columns = 0;  // the request is complete
        machine.scheduler().wake(*waiter);
        return column;
      }
    }
    mine.waiters.push_back(&thread);
    peer.waiters.push_back(&thread);
    machine.scheduler().block(for_columns);
  }
}

}  // namespace

void tmem_allocate(int cta_group, uint32_t* out, int columns, const Where& where) {
  constexpr const char* kPrimitive = "tmem_allocate";
  Machine& machine = Machine::current();
  machine.scheduler().maybe_yield();
  machine.collectives().warp(kAllLanes, kPrimitive, where, nullptr, [&](Collective&) {
    Thread& thread = Machine::current_thread();
    TensorMemory& memory = memory_of(thread, kPrimitive, where, cta_group);
    if (!arch::is_tmem_allocation(columns)) {
      machine.reporter().fail(
          ReportKind::kProtocol, kPrimitive, where,
          std::to_string(columns) + " columns: an allocation has 32, 64, 128, 256 or 512");
    }
    if (memory.is_relinquished) {
      machine.reporter().fail(
          ReportKind::kProtocol, kPrimitive, where,
          "the CTA gave up its right to allocate at " + line_of(memory.relinquished));
    }
    int column = -1;
    if (cta_group == 2) {
      column = allocate_pair(thread, memory, columns, where);
    } else {
      while ((column = memory.find_free(columns)) < 0) {
        memory.waiters.push_back(&thread);
        machine.scheduler().block(
            {.which = std::to_string(columns) + " free columns of tensor memory",
             .primitive = kPrimitive,
             .where = where});
      }
      memory.allocate(column, columns, where);
    }
    const auto address = static_cast<uint32_t>(column);
    machine.memory().thread_shared(out, sizeof address, true, kPrimitive, where);
    std::memcpy(out, &address, sizeof address);
  });
}

void tmem_free(int cta_group, TmemPtr at, int columns, const Where& where) {
  Machine& machine = Machine::current();
  machine.scheduler().maybe_yield();
  machine.collectives().warp(kAllLanes, "tmem_free", where, nullptr, [&](Collective& group) {
    TensorMemory& memory = memory_of(Machine::current_thread(), "tmem_free", where, cta_group);
    if (at.lane() != 0) {
      machine.reporter().fail(ReportKind::kProtocol, "tmem_free", where,
                              "the address names lane " + std::to_string(at.lane()) + ", not 0");
    }
    Clocks known;  // complete accesses need no fence
    for (const Thread* thread : group.threads) {
      if (thread == nullptr) continue;
      known.tensor.join(thread->clocks->generic);
      known.tensor.join(thread->clocks->async);
      known.tensor.join(thread->clocks->tensor);
    }
    memory.free(at.column(), columns, known, where);
  });
}

void tmem_relinquish(int cta_group, const Where& where) {
  Machine& machine = Machine::current();
  machine.collectives().warp(kAllLanes, "tmem_relinquish", where, nullptr, [&](Collective&) {
    TensorMemory& memory =
        memory_of(Machine::current_thread(), "tmem_relinquish", where, cta_group);
    memory.is_relinquished = true;
    memory.relinquished = where;
  });
}

// --- loads and stores --------------------------------------------------------------------------

namespace {

struct LaneTransfer {
  TmemPtr at;
  uint32_t* registers;
};

// Consecutive columns of one lane that the instruction moves, and a thread that takes part in it.
struct Run {
  int lane, column, columns, thread;
};

std::vector<Run> runs_of(const TmemTransfer& transfer) {
  std::vector<Run> runs;
  if (transfer.shape == TmemShape::k32x32b) {
    for (int lane = 0; lane < 32; ++lane) runs.push_back({lane, 0, transfer.repeat, lane});
    return runs;
  }
  for (int lane = 0; lane < 16; ++lane) {
    if (transfer.shape == TmemShape::k16x32bx2) {
      runs.push_back({lane, 0, transfer.repeat, lane});
      runs.push_back({lane, transfer.split, transfer.repeat, lane + 16});
    } else {
      const int columns = 2 * arch::tmem_registers(transfer.shape, transfer.repeat);
      runs.push_back({lane, 0, columns, 4 * (lane % 8)});
    }
  }
  return runs;
}

// The address of the warp's instruction: the same in all lanes, and in the warp's own TMEM lanes.
TmemPtr check_address(const TmemTransfer& transfer, const Collective& group, const char* primitive,
                      const Where& where) {
  Machine& machine = Machine::current();
  const Thread& thread = Machine::current_thread();
  const TmemPtr at =
      static_cast<const LaneTransfer*>(group.arguments[static_cast<size_t>(thread.lane())])->at;
  for (size_t lane = 0; lane < 32; ++lane) {
    if (group.threads[lane] == nullptr) {
      machine.reporter().fail(ReportKind::kProtocol, primitive, where,
                              "the warp is not whole: 32 lanes move");
    }
    if (static_cast<const LaneTransfer*>(group.arguments[lane])->at != at) {
      machine.reporter().fail(ReportKind::kProtocol, primitive, where,
                              "the lanes of the warp give different addresses");
    }
  }
  const int first = arch::tmem_first_lane_of_warp(thread.warp());
  const int lanes = transfer.shape == TmemShape::k32x32b ? 32 : 16;
  if (at.lane() < first || at.lane() + lanes > first + 32) {
    machine.reporter().fail(
        ReportKind::kProtocol, primitive, where,
        "warp " + std::to_string(thread.warp()) + " touches lanes " + std::to_string(at.lane()) +
            ".." + std::to_string(at.lane() + lanes - 1) + " of tensor memory; its own are " +
            std::to_string(first) + ".." + std::to_string(first + 31));
  }
  if ((at.lane() - first) % 16 != 0) {
    machine.reporter().fail(ReportKind::kProtocol, primitive, where,
                            "the address names lane " + std::to_string(at.lane()) +
                                "; a shape of 16 lanes begins at a multiple of 16");
  }
  return at;
}

// Checks and records an access of the warp, each row with the clocks of a thread that touches it.
void access_runs(TensorMemory& memory, const TmemTransfer& transfer, const Collective& group,
                 TmemPtr at, bool is_write, const char* primitive, const Where& where) {
  const Thread& warp_thread = *group.threads[0];
  const int warp = warp_thread.warp();
  const TensorMemory::WarpState& state = memory.warp(warp);
  for (const Run& run : runs_of(transfer)) {
    const Access access{
        .stamp = {.agent = is_write ? memory.store_agent(warp) : memory.load_agent(warp),
                  .time = is_write ? state.store_time : state.load_time,
                  .primitive = primitive,
                  .where = where,
                  .proxy = Proxy::kTensor},
        .clocks = group.threads[static_cast<size_t>(run.thread)]->clocks.get()};
    const int lane = at.lane() + run.lane;
    const int column = at.column() + run.column;
    if (is_write) {
      memory.write(lane, column, run.columns, access);
    } else {
      memory.read(lane, column, run.columns, access, false);
    }
  }
}

}  // namespace

void tmem_load(const TmemTransfer& transfer, TmemPtr from, uint32_t* out, const Where& where) {
  constexpr const char* kPrimitive = "tmem_load";
  LaneTransfer mine{from, out};
  Machine& machine = Machine::current();
  machine.collectives().warp(kAllLanes, kPrimitive, where, &mine, [&](Collective& group) {
    Thread& thread = Machine::current_thread();
    TensorMemory& memory = memory_of(thread, kPrimitive, where);
    const TmemPtr at = check_address(transfer, group, kPrimitive, where);
    access_runs(memory, transfer, group, at, false, kPrimitive, where);

    const int registers = arch::tmem_registers(transfer.shape, transfer.repeat);
    TensorMemory::PendingLoad load{.where = where, .registers = registers, .to = {}, .values = {}};
    load.values.resize(static_cast<size_t>(32 * registers));
    for (int lane = 0; lane < 32; ++lane) {
      uint32_t* const to =
          static_cast<LaneTransfer*>(group.arguments[static_cast<size_t>(lane)])->registers;
      load.to[static_cast<size_t>(lane)] = to;
      for (int r = 0; r < registers; ++r) {
        const TmemIndex index = arch::tmem_element(transfer.shape, lane, r, transfer.split);
        load.values[static_cast<size_t>(lane * registers + r)] =
            *memory.word(at.lane() + index.lane, at.column() + index.column);
        to[r] = kPoison;
      }
    }
    auto& loads = memory.warp(thread.warp()).loads;
    const auto overlaps = [&](const TensorMemory::PendingLoad& earlier) {
      return earlier.to[0] < load.to[0] + registers &&
             load.to[0] < earlier.to[0] + earlier.registers;
    };
    for (const TensorMemory::PendingLoad& earlier : loads) {
      if (!overlaps(earlier)) continue;
      machine.reporter().report(ReportKind::kProtocol, kPrimitive, where,
                                "the registers are still the destination of the load at " +
                                    line_of(earlier.where) +
                                    "\n  tmem_wait_load is missing between the two");
    }
    std::erase_if(loads, overlaps);
    loads.push_back(std::move(load));
  });
}

void tmem_store(const TmemTransfer& transfer, TmemPtr to, const uint32_t* in, const Where& where) {
  constexpr const char* kPrimitive = "tmem_store";
  LaneTransfer mine{to, const_cast<uint32_t*>(in)};
  Machine::current().collectives().warp(
      kAllLanes, kPrimitive, where, &mine, [&](Collective& group) {
        Thread& thread = Machine::current_thread();
        TensorMemory& memory = memory_of(thread, kPrimitive, where);
        const TmemPtr at = check_address(transfer, group, kPrimitive, where);
        access_runs(memory, transfer, group, at, true, kPrimitive, where);
        const int registers = arch::tmem_registers(transfer.shape, transfer.repeat);
        for (int lane = 0; lane < 32; ++lane) {
          const uint32_t* const from =
              static_cast<LaneTransfer*>(group.arguments[static_cast<size_t>(lane)])->registers;
          for (int r = 0; r < registers; ++r) {
            const TmemIndex index = arch::tmem_element(transfer.shape, lane, r, transfer.split);
            *memory.word(at.lane() + index.lane, at.column() + index.column) = from[r];
          }
        }
        memory.warp(thread.warp()).store = where;
      });
}

// --- waits and fences --------------------------------------------------------------------------

namespace {

// False where the registers no longer hold the poison. In a kernel without the wait they may be out
// of scope: AddressSanitizer would report that, though the stack still exists.
#if defined(__SANITIZE_ADDRESS__)
__attribute__((no_sanitize_address, noinline))
#endif
bool deliver(const TensorMemory::PendingLoad& load, size_t lane) {
  uint32_t* const to = load.to[lane];
  const uint32_t* const values = &load.values[lane * static_cast<size_t>(load.registers)];
  for (int i = 0; i < load.registers; ++i) {
    if (to[i] != kPoison) return false;
  }
  for (int i = 0; i < load.registers; ++i) to[i] = values[i];
  return true;
}

// All lanes of the warp acquire what `agent` did until `time`.
void complete(Collective& group, Agent agent, uint32_t time) {
  for (Thread* thread : group.threads) {
    if (thread == nullptr) continue;
    Clocks& clocks = thread->own_clocks();
    clocks.tensor.set(agent, time);
    clocks.async.set(agent, time);
  }
}

}  // namespace

void tmem_wait_load(const Where& where) {
  constexpr const char* kPrimitive = "tmem_wait_load";
  Machine& machine = Machine::current();
  Thread& self = Machine::current_thread();
  if (machine.mutations().is_dropped(kPrimitive, where)) {
    // The registers keep their poison.
    memory_of(self, kPrimitive, where).warp(self.warp()).loads.clear();
    return;
  }
  machine.collectives().warp(kAllLanes, kPrimitive, where, nullptr, [&](Collective& group) {
    Thread& thread = Machine::current_thread();
    TensorMemory& memory = memory_of(thread, kPrimitive, where);
    TensorMemory::WarpState& state = memory.warp(thread.warp());
    for (const TensorMemory::PendingLoad& load : state.loads) {
      for (size_t lane = 0; lane < 32; ++lane) {
        if (deliver(load, lane)) continue;
        machine.reporter().report(ReportKind::kProtocol, "tmem_load", load.where,
                                  "the registers of this load were changed before tmem_wait_load");
        break;
      }
    }
    state.loads.clear();
    complete(group, memory.load_agent(thread.warp()), state.load_time++);
  });
}

void tmem_wait_store(const Where& where) {
  constexpr const char* kPrimitive = "tmem_wait_store";
  Machine& machine = Machine::current();
  if (machine.mutations().is_dropped(kPrimitive, where)) return;
  machine.collectives().warp(kAllLanes, kPrimitive, where, nullptr, [&](Collective& group) {
    Thread& thread = Machine::current_thread();
    TensorMemory& memory = memory_of(thread, kPrimitive, where);
    TensorMemory::WarpState& state = memory.warp(thread.warp());
    state.store.reset();
    complete(group, memory.store_agent(thread.warp()), state.store_time++);
  });
}

void tcgen05_fence_before_thread_sync(const Where& where) {
  Machine& machine = Machine::current();
  if (machine.mutations().is_dropped("tcgen05_fence_before_thread_sync", where)) return;
  publish_tensor_accesses(Machine::current_thread(), Machine::current_thread().own_clocks());
}

void tcgen05_fence_after_thread_sync(const Where& where) {
  Machine& machine = Machine::current();
  if (machine.mutations().is_dropped("tcgen05_fence_after_thread_sync", where)) return;
  Clocks& clocks = Machine::current_thread().own_clocks();
  clocks.tensor.join(clocks.generic);
}

Clocks fenced_tensor_accesses(const Thread& thread) {
  Clocks clocks;
  const TensorMemory* const memory = thread.cta->tensor_memory.get();
  if (memory == nullptr) return clocks;
  const int warp = thread.warp();
  for (const Agent agent : {memory->store_agent(warp), memory->load_agent(warp)}) {
    clocks.generic.set(agent, thread.clocks->generic.get(agent));
  }
  return clocks;
}

void publish_tensor_accesses(const Thread& thread, Clocks& clocks) {
  const TensorMemory* const memory = thread.cta->tensor_memory.get();
  if (memory == nullptr) return;
  const int warp = thread.warp();
  for (const Agent agent : {memory->store_agent(warp), memory->load_agent(warp)}) {
    clocks.generic.set(agent, thread.clocks->tensor.get(agent));
  }
}

}  // namespace pagoda::emulator
