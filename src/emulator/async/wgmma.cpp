// Rules: PTX ISA, "Asynchronous warpgroup level matrix instructions". The emulator requires the
// wgmma.fence of CUTLASS: one by every thread at the start of each commit group. wgmma.wait_group
// waits for the groups of the executing threads: what it says of the other three warps of the
// warpgroup the ISA leaves open, so a wait covers the share of the thread's own warp. For speed one
// warp, chosen at random for each wgmma, reads the operands for all four.
#include "emulator/async/wgmma.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arch/layout/fragment_layout.hpp"
#include "emulator/async/matrix_operand.hpp"
#include "emulator/report/place.hpp"

namespace pagoda::emulator {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = 4;
constexpr int kM = 64;
constexpr int kKBytes = 32;
constexpr uint32_t kPoison = 0xffffffff;  // NaN

// Accumulators of the warpgroup: one array of registers in each thread.
struct Tile {
  int n = 0;
  Where where;                                  // of the first wgmma
  std::vector<float> values;                    // [kM, n], where they are in flight
  std::array<float*, kThreads> registers{};     // [n / 2]
  std::array<bool, kThreads> is_in_flight{};    // else the thread's registers hold its values
  std::array<uint32_t, kThreads> last_wgmma{};  // number of the last one of each thread

  [[nodiscard]] bool overlaps(size_t thread, const float* begin, int their_n) const {
    const float* const mine = registers[thread];
    return is_in_flight[thread] && begin < mine + n / 2 && mine < begin + their_n / 2;
  }
};

// A wgmma that some of the 128 threads have executed.
struct Wgmma {
  WgmmaShape shape;
  arch::SmemDescriptor a, b;
  bool accumulates;
  Where where;
  std::shared_ptr<Tile> tile;
  int num_executed = 0;        // threads that have executed it
  std::vector<float> a_panel;  // [kM, k], if A is in registers
  // The operation is ordered after what all threads know. For speed the clocks of one lane of each
  // warp, chosen at random, are those of the warp.
  std::array<int, kWarps> delegate;
  std::array<std::shared_ptr<const Clocks>, kWarps> known;

  [[nodiscard]] int k() const { return kKBytes / element_bytes(shape.type); }
};

// A in registers of a wgmma in flight.
struct ARegisters {
  uint32_t number;  // of the wgmma
  const uint32_t* registers;
  std::array<uint32_t, 4> values;
  Where where;
};

struct Lane {
  uint32_t issued = 0;          // wgmma that it has executed, numbered from 1
  uint32_t committed = 0;       // of these, in a group
  bool is_fenced = false;       // since the last commit
  std::deque<uint32_t> groups;  // last wgmma of each group that was not waited for
  std::deque<ARegisters> a_in_flight;
  Where last_wgmma, last_commit;
};

}  // namespace

class WgmmaEngine {
 public:
  WgmmaEngine(Machine& machine, const Cta& cta, int warpgroup)
      : machine_(machine), cta_(cta), first_warp_(warpgroup * kWarps) {}

  void fence(const Thread& thread) { lane(thread).is_fenced = true; }
  void issue(Thread& thread, const WgmmaShape& shape, const WgmmaOperands& operands,
             const Where& where);
  void commit(const Thread& thread, const Where& where);
  void wait(Thread& thread, size_t groups_in_flight, const Where& where);
  void end(const Thread& thread);

 private:
  static size_t index(const Thread& thread) { return static_cast<size_t>(thread.index) % kThreads; }
  Lane& lane(const Thread& thread) { return lanes_[index(thread)]; }
  [[nodiscard]] Agent agent_of(int warp) const {  // of the warpgroup
    return machine_.engines().wgmma_agent(cta_, first_warp_ + warp);
  }
  std::shared_ptr<Tile> find_tile(size_t thread, const WgmmaShape& shape, const float* registers,
                                  const Where& where);
  void take_accumulators(const Thread& thread, const Wgmma& product, float* registers,
                         uint32_t number, const Where& where);
  void release_a_registers(const Thread& thread, uint32_t completed, const Where& where);
  void return_accumulators(const Thread& thread, uint32_t completed, const Where& where);
  void start(Thread& thread, std::shared_ptr<Wgmma> product);
  void execute(const AsyncOperation& operation, const Wgmma& product);

  Machine& machine_;
  const Cta& cta_;
  int first_warp_;  // of the warpgroup, in the CTA
  AsyncQueue queue_;
  uint32_t started_ = 0;                     // wgmma that all threads have executed
  uint32_t completed_ = 0;                   // of these, complete
  std::deque<std::shared_ptr<Wgmma>> open_;  // wgmma started_ + 1 and on
  std::array<Lane, kThreads> lanes_;
  std::vector<std::shared_ptr<Tile>> tiles_;  // with values in flight
  std::vector<Thread*> waiters_;
  std::vector<float> a_panel_, b_panel_;
};

// --- issue -------------------------------------------------------------------------------------

void WgmmaEngine::issue(Thread& thread, const WgmmaShape& shape, const WgmmaOperands& operands,
                        const Where& where) {
  Lane& mine = lane(thread);
  if (!mine.is_fenced) {
    machine_.reporter().report(
        ReportKind::kProtocol, "wgmma", where,
        "no wgmma_fence since the last wgmma_commit_group: the tensor core may read "
        "registers before their last write");
    mine.is_fenced = true;
  }
  const uint32_t number = ++mine.issued;
  mine.last_wgmma = where;
  if (number - started_ > open_.size()) {
    auto product = std::make_shared<Wgmma>();
    product->shape = shape;
    product->a = operands.a;
    product->b = operands.b;
    product->accumulates = operands.accumulates;
    product->where = where;
    product->tile = find_tile(index(thread), shape, operands.accumulators, where);
    if (shape.has_a_in_registers) {
      product->a_panel.resize(static_cast<size_t>(kM * product->k()));
    }
    for (int& delegate : product->delegate) {
      delegate = static_cast<int>(machine_.scheduler().random()() % (kThreads / kWarps));
    }
    open_.push_back(std::move(product));
  }
  const std::shared_ptr<Wgmma> product = open_[number - started_ - 1];
  if (product->shape != shape || product->a != operands.a || product->b != operands.b ||
      product->accumulates != operands.accumulates) {
    machine_.reporter().fail(
        ReportKind::kProtocol, "wgmma", where,
        "the threads of a warpgroup must execute the same wgmma; others are at " +
            line_of(product->where) +
            (product->shape != shape ? ", of another shape" : ", with other descriptors or scale"));
  }
  take_accumulators(thread, *product, operands.accumulators, number, where);
  if (shape.has_a_in_registers) {
    ARegisters a{.number = number, .registers = operands.a_registers, .values = {}, .where = where};
    std::copy_n(a.registers, a.values.size(), a.values.begin());
    mine.a_in_flight.push_back(a);
    const int elements = 16 / element_bytes(shape.type);
    float values[16];
    decode_elements(shape.type, operands.a_registers, elements, values);
    for (int e = 0; e < elements; ++e) {
      const auto at = static_cast<int32_t>(index(thread));
      const arch::MatrixIndex element =
          element_bytes(shape.type) == 1 ? arch::wgmma_a_8bit(at, e) : arch::wgmma_a_16bit(at, e);
      product->a_panel[static_cast<size_t>(element.row * product->k() + element.column)] =
          values[e];
    }
  }
  const size_t warp = index(thread) / 32;
  if (product->delegate[warp] == thread.lane()) product->known[warp] = thread.clocks;
  if (++product->num_executed < kThreads) return;
  open_.pop_front();
  ++started_;
  start(thread, product);
}

// The accumulators in flight in these registers, or new ones.
std::shared_ptr<Tile> WgmmaEngine::find_tile(size_t thread, const WgmmaShape& shape,
                                             const float* registers, const Where& where) {
  for (const auto& tile : tiles_) {
    if (tile->registers[thread] == registers && tile->n == shape.n) return tile;
  }
  auto tile = std::make_shared<Tile>();
  tile->n = shape.n;
  tile->where = where;
  tile->values.resize(static_cast<size_t>(kM * shape.n));
  return tiles_.emplace_back(std::move(tile));
}

// Copies the thread's accumulators from its registers to the engine and poisons the registers.
void WgmmaEngine::take_accumulators(const Thread& thread, const Wgmma& product, float* registers,
                                    uint32_t number, const Where& where) {
  const size_t at = index(thread);
  for (const auto& other : tiles_) {
    if (other != product.tile && other->overlaps(at, registers, product.shape.n)) {
      machine_.reporter().fail(ReportKind::kProtocol, "wgmma", where,
                               "the accumulators overlap those of the wgmma in flight at " +
                                   line_of(other->where) +
                                   ", of another shape: no wait comes between");
    }
  }
  Tile& tile = *product.tile;
  if (tile.registers[at] != nullptr && tile.registers[at] != registers) {
    machine_.reporter().fail(
        ReportKind::kProtocol, "wgmma", where,
        "this thread uses other accumulators than the rest of its warpgroup, which "
        "adds to those of the wgmma at " +
            line_of(tile.where));
  }
  tile.registers[at] = registers;
  tile.last_wgmma[at] = number;
  if (tile.is_in_flight[at]) return;
  tile.is_in_flight[at] = true;
  for (int i = 0; i < tile.n / 2; ++i) {
    if (product.accumulates) {
      const arch::MatrixIndex to = arch::wgmma_accumulator(static_cast<int32_t>(at), i);
      tile.values[static_cast<size_t>(to.row * tile.n + to.column)] = registers[i];
    }
    registers[i] = std::bit_cast<float>(kPoison);
  }
}

void WgmmaEngine::start(Thread& thread, std::shared_ptr<Wgmma> product) {
  Clocks known = *product->known[0];
  for (size_t warp = 1; warp < kWarps; ++warp) known.meet(*product->known[warp]);
  product->known = {};
  auto operation = std::make_unique<AsyncOperation>();
  operation->primitive = "wgmma";
  operation->where = product->where;
  operation->issuer = &thread;
  operation->cta = thread.cta;
  operation->agent = agent_of(static_cast<int>(machine_.scheduler().random()() % kWarps));
  operation->time = started_;
  operation->known = std::make_shared<const Clocks>(std::move(known));
  operation->run = [this, product = std::move(product)](const AsyncOperation& self) {
    execute(self, *product);
  };
  machine_.engines().submit(std::move(operation), &queue_);
}

// --- execution ---------------------------------------------------------------------------------

void WgmmaEngine::execute(const AsyncOperation& operation, const Wgmma& product) {
  const WgmmaShape& shape = product.shape;
  const int n = shape.n, k = product.k();
  if (!shape.has_a_in_registers) {
    a_panel_.resize(static_cast<size_t>(kM * k));
    read_operand(machine_, operation, cta_,
                 {.name = "A",
                  .descriptor = product.a,
                  .format = arch::DescriptorFormat::kSm90,
                  .major = shape.a_major,
                  .type = shape.type,
                  .mn = kM,
                  .k = k,
                  .mn_stride = k,
                  .k_stride = 1},
                 a_panel_.data());
  }
  b_panel_.resize(static_cast<size_t>(k * n));
  read_operand(machine_, operation, cta_,
               {.name = "B",
                .descriptor = product.b,
                .format = arch::DescriptorFormat::kSm90,
                .major = shape.b_major,
                .type = shape.type,
                .mn = n,
                .k = k,
                .mn_stride = 1,
                .k_stride = n},
               b_panel_.data());
  std::vector<float>& d = product.tile->values;
  if (!product.accumulates) std::fill(d.begin(), d.end(), 0.0F);
  multiply_accumulate(kM, n, k, shape.has_a_in_registers ? product.a_panel.data() : a_panel_.data(),
                      b_panel_.data(), d.data());
  machine_.engines().count_multiply_adds(static_cast<uint64_t>(kM) * static_cast<uint64_t>(n * k));
  completed_ = operation.time;
  for (Thread* waiter : std::exchange(waiters_, {})) machine_.scheduler().wake(*waiter);
}

// --- groups ------------------------------------------------------------------------------------

void WgmmaEngine::commit(const Thread& thread, const Where& where) {
  Lane& mine = lane(thread);
  mine.is_fenced = false;
  mine.committed = mine.issued;
  mine.groups.push_back(mine.committed);
  mine.last_commit = where;
}

void WgmmaEngine::wait(Thread& thread, size_t groups_in_flight, const Where& where) {
  std::deque<uint32_t>& groups = lane(thread).groups;
  if (groups.size() <= groups_in_flight) return;
  const auto first_kept = groups.end() - static_cast<std::ptrdiff_t>(groups_in_flight);
  const uint32_t awaited = *(first_kept - 1);
  groups.erase(groups.begin(), first_kept);
  if (completed_ < awaited) {
    machine_.trace().begin(thread, "wgmma", "wait");
    const std::string which =
        line_of(lane(thread).last_wgmma) + ", which all 128 threads of the warpgroup must execute";
    while (completed_ < awaited) {
      waiters_.push_back(&thread);
      machine_.scheduler().block({.what = "wgmma up to the one at ",
                                  .which = which,
                                  .primitive = "wgmma_wait_group",
                                  .where = where});
    }
    machine_.trace().end(thread);
  }
  const Agent agent = agent_of(static_cast<int>(index(thread) / 32));
  Clocks& clocks = thread.own_clocks();
  clocks.generic.set(agent, std::max(clocks.generic.get(agent), awaited));
  clocks.async.set(agent, std::max(clocks.async.get(agent), awaited));
  release_a_registers(thread, awaited, where);
  return_accumulators(thread, awaited, where);
}

// The tensor core may read A until the wgmma is complete; here it has read A at the issue.
void WgmmaEngine::release_a_registers(const Thread& thread, uint32_t completed,
                                      const Where& where) {
  std::deque<ARegisters>& in_flight = lane(thread).a_in_flight;
  for (; !in_flight.empty() && in_flight.front().number <= completed; in_flight.pop_front()) {
    const ARegisters& a = in_flight.front();
    if (std::equal(a.values.begin(), a.values.end(), a.registers)) continue;
    machine_.reporter().report(ReportKind::kProtocol, "wgmma_wait_group", where,
                               "the thread wrote registers of A of the wgmma in flight at " +
                                   line_of(a.where) + " before this wait");
  }
}

// Copies the accumulators of completed wgmma back to the thread's registers.
void WgmmaEngine::return_accumulators(const Thread& thread, uint32_t completed,
                                      const Where& where) {
  const size_t at = index(thread);
  for (const auto& tile : tiles_) {
    if (!tile->is_in_flight[at] || tile->last_wgmma[at] > completed) continue;
    tile->is_in_flight[at] = false;
    float* const registers = tile->registers[at];
    const bool is_untouched = std::all_of(registers, registers + tile->n / 2, [](float value) {
      return std::bit_cast<uint32_t>(value) == kPoison;
    });
    if (!is_untouched) {
      machine_.reporter().report(ReportKind::kProtocol, "wgmma_wait_group", where,
                                 "the thread wrote accumulators of the wgmma in flight at " +
                                     line_of(tile->where) + " before this wait");
      continue;  // the registers may hold another variable now
    }
    for (int i = 0; i < tile->n / 2; ++i) {
      const arch::MatrixIndex from = arch::wgmma_accumulator(static_cast<int32_t>(at), i);
      registers[i] = tile->values[static_cast<size_t>(from.row * tile->n + from.column)];
    }
  }
  std::erase_if(tiles_, [](const auto& tile) {
    return std::none_of(tile->is_in_flight.begin(), tile->is_in_flight.end(),
                        [](bool is_in_flight) { return is_in_flight; });
  });
}

void WgmmaEngine::end(const Thread& thread) {
  const Lane& mine = lane(thread);
  if (mine.committed != mine.issued) {
    machine_.reporter().report(ReportKind::kProtocol, "wgmma", mine.last_wgmma,
                               "the thread ended without wgmma_commit_group after this", &thread);
  }
  if (!mine.groups.empty() && mine.groups.back() > 0) {
    machine_.reporter().report(ReportKind::kProtocol, "wgmma_commit_group", mine.last_commit,
                               "the thread ended without a wgmma_wait_group for this group",
                               &thread);
  }
}

// --- for the executing thread ------------------------------------------------------------------

namespace {

WgmmaEngine& engine(const char* primitive, const Where& where) {
  Machine& machine = Machine::current();
  const Thread& thread = Machine::current_thread();
  std::shared_ptr<WgmmaEngine>& engine =
      thread.cta->warpgroups[static_cast<size_t>(thread.warpgroup())].wgmma;
  if (engine == nullptr) {
    if ((thread.warpgroup() + 1) * kThreads > machine.shape().threads) {
      machine.reporter().fail(ReportKind::kProtocol, primitive, where,
                              "the warpgroup does not have four warps: the CTA has " +
                                  std::to_string(machine.shape().threads) + " threads");
    }
    engine = std::make_shared<WgmmaEngine>(machine, *thread.cta, thread.warpgroup());
  }
  return *engine;
}

}  // namespace

void wgmma(const WgmmaShape& shape, const WgmmaOperands& operands, const Where& where) {
  Machine& machine = Machine::current();
  machine.scheduler().maybe_yield();
  machine.scheduler().progress();
  const auto check = [&](const char* name, arch::SmemDescriptor descriptor, arch::Major major) {
    const char* const wrong =
        arch::validate(descriptor, arch::DescriptorFormat::kSm90, major, element_bytes(shape.type));
    if (wrong != nullptr) {
      machine.reporter().fail(ReportKind::kProtocol, "wgmma", where,
                              std::string("the descriptor of operand ") + name + ": " + wrong);
    }
  };
  if (!shape.has_a_in_registers) check("A", operands.a, shape.a_major);
  check("B", operands.b, shape.b_major);
  engine("wgmma", where).issue(Machine::current_thread(), shape, operands, where);
}

void wgmma_fence(const Where& where) {
  if (Machine::current().mutations().is_dropped("wgmma_fence", where)) return;
  engine("wgmma_fence", where).fence(Machine::current_thread());
}

void wgmma_commit_group(const Where& where) {
  if (Machine::current().mutations().is_dropped("wgmma_commit_group", where)) return;
  engine("wgmma_commit_group", where).commit(Machine::current_thread(), where);
}

void wgmma_wait_group(int groups_in_flight, const Where& where) {
  const Mutation mutation = Machine::current().mutations().at("wgmma_wait_group", where,
                                                              Mutation::kDrop | Mutation::kMore);
  if (mutation == Mutation::kDrop) return;
  if (mutation == Mutation::kMore) ++groups_in_flight;
  engine("wgmma_wait_group", where)
      .wait(Machine::current_thread(), static_cast<size_t>(groups_in_flight), where);
}

void wgmma_end_thread(const Thread& thread) {
  WgmmaEngine* const engine =
      thread.cta->warpgroups[static_cast<size_t>(thread.warpgroup())].wgmma.get();
  if (engine != nullptr) engine->end(thread);
}

}  // namespace pagoda::emulator
