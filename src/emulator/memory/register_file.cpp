// PTX ISA, setmaxnreg: a CTA owns the registers that it was launched with, and no more; a warp can
// acquire only what other warps have released. Measured on an H200 (21 Nov 2026), 384 threads of
// 168: budgets 24 + 2 x 240 run; 32 + 2 x 240 hang, though the register file has room for them.
#include "emulator/memory/register_file.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace pagoda::emulator {
namespace {

constexpr int kRegisterFile = 65536;  // 32-bit registers of an SM (CUDA programming guide)
constexpr int kFewest = 24;           // a thread, the smallest budget
constexpr int kLanes = 32;

void change_budget(int registers, bool is_increase, const char* primitive, const Where& where) {
  Machine& machine = Machine::current();
  machine.scheduler().maybe_yield();
  Thread& thread = Machine::current_thread();
  Cta& cta = *thread.cta;
  const LaunchShape& shape = machine.shape();
  if (shape.registers * shape.threads > kRegisterFile) {
    machine.reporter().fail(
        ReportKind::kProtocol, primitive, where,
        std::to_string(shape.threads) + " threads of " + std::to_string(shape.registers) +
            " registers do not fit the register file of " + std::to_string(kRegisterFile));
  }
  if (shape.threads / 128 * 128 <= thread.warpgroup() * 128) {
    machine.reporter().fail(ReportKind::kProtocol, primitive, where,
                            "the warpgroup does not have four warps");
  }
  machine.collectives().warp(kAllLanes, primitive, where, nullptr, [&](Collective& group) {
    Warp& warp = cta.warps[static_cast<size_t>(thread.warp())];
    if (is_increase ? registers < warp.registers : registers > warp.registers) {
      machine.reporter().fail(ReportKind::kProtocol, primitive, where,
                              std::string(is_increase ? "an increase to " : "a decrease to ") +
                                  std::to_string(registers) + " registers, where the warp has " +
                                  std::to_string(warp.registers));
    }
    ++warp.register_changes;
    warp.register_change = where;
    if (!is_increase) {
      cta.free_registers += (warp.registers - registers) * kLanes;
      warp.registers = registers;
      for (Thread* waiter : std::exchange(cta.register_waiters, {}))
        machine.scheduler().wake(*waiter);
      return;
    }
    const int wanted = (registers - warp.registers) * kLanes;
    int within_reach = cta.free_registers;  // if all other warps released down to kFewest
    for (const Warp& other : cta.warps) {
      if (&other != &warp) within_reach += std::max(0, other.registers - kFewest) * kLanes;
    }
    if (wanted > within_reach) {
      machine.reporter().fail(
          ReportKind::kProtocol, primitive, where,
          "the warp wants " + std::to_string(wanted) +
              " more registers; all other warps of the CTA can give back only " +
              std::to_string(within_reach));
    }
    while (cta.free_registers < wanted) {
      const Waiting for_registers{.which = std::to_string(wanted) +
                                           " registers to raise the warp from " +
                                           std::to_string(warp.registers) + " to " +
                                           std::to_string(registers) + " a thread",
                                  .primitive = primitive,
                                  .where = where};
      for (Thread* lane : group.threads) {
        if (lane != nullptr) lane->waiting = for_registers;
      }
      cta.register_waiters.push_back(&thread);
      machine.scheduler().block(for_registers);
    }
    cta.free_registers -= wanted;
    warp.registers = registers;
  });
}

}  // namespace

void register_budget_increase(int registers, const Where& where) {
  change_budget(registers, true, "register_budget_increase", where);
}

void register_budget_decrease(int registers, const Where& where) {
  change_budget(registers, false, "register_budget_decrease", where);
}

void register_budget_end_cta(Reporter& reporter, const Cta& cta) {
  for (size_t first = 0; first + 4 <= cta.warps.size(); first += 4) {
    for (size_t i = first; i < first + 4; ++i) {
      const Warp& most = *std::max_element(
          &cta.warps[first], &cta.warps[first] + 4,
          [](const Warp& a, const Warp& b) { return a.register_changes < b.register_changes; });
      if (cta.warps[i].register_changes == most.register_changes) continue;
      reporter.report(
          ReportKind::kProtocol, "register_budget", most.register_change,
          "warp " + std::to_string(i) + " did not execute this; all four warps of a warpgroup must",
          &cta.threads[i * kLanes]);
    }
  }
}

}  // namespace pagoda::emulator
