// EmulatedMachine: the emulator as the registry rows of attention kernels want a machine.
#pragma once

#include "backends/emulator/machine_settings.hpp"
#include "backends/emulator/on_emulator.hpp"
#include "backends/emulator/problem_buffers.hpp"
#include "backends/emulator/sm90_backend.hpp"
#include "kernels/common/registry_rows.hpp"

namespace pagoda::emulator {

// `Name`: struct with `kBackend`.
template <class Name>
struct EmulatedMachine {
  using Launcher = OnEmulator;
  static constexpr const char* kBackend = Name::kBackend;

  static std::string unsupported_reason(std::span<const int32_t> /*archs*/,
                                        const core::Problem& /*problem*/) {
    return {};
  }

  static int32_t num_sms(const core::Problem& /*problem*/, int32_t fewest) {
    const int32_t wanted = emulator::num_sms();
    return wanted == 0 ? fewest : wanted;
  }

  // Buffers are declared for the emulator's checks.
  static EmulatedLaunch make_context(const core::Kernel& row, const core::KernelPlan& plan,
                                     const core::Problem& problem, std::span<std::byte> workspace,
                                     const core::RunContext& /*context*/) {
    return {.name = row.name,
            .buffers = buffers_of(problem, plan.zeroed_workspace_bytes, workspace).merged()};
  }

  static void finish(const EmulatedLaunch& launch) { expect_clean(launch.result); }
};

}  // namespace pagoda::emulator
