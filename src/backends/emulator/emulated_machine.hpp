// EmulatedMachine: the emulator as the machine of a KernelTable.
#pragma once

#include <string>

#include "backends/emulator/backend.hpp"
#include "backends/emulator/machine_settings.hpp"
#include "backends/emulator/problem_buffers.hpp"
#include "kernels/common/kernel_table.hpp"
#include "kernels/common/on_emulator.hpp"

namespace pagoda::emulator {

// `Chip`: struct with kBackend, kArch and kVendor.
template <class Chip>
struct EmulatedMachine {
  using Launcher = kernels::OnEmulator;
  static constexpr const char* kBackend = Chip::kBackend;

  static constexpr bool serves(const kernels::Archs& archs) {
    return archs.run_on(Chip::kArch, Chip::kVendor);
  }
  static constexpr bool has_code(const kernels::Archs& /*archs*/) { return true; }

  static constexpr bool can_run(const kernels::Archs& /*archs*/, const core::Problem& /*problem*/) {
    return true;
  }
  static std::string unsupported_reason(const kernels::Archs& /*archs*/,
                                        const core::Problem& /*problem*/) {
    return {};
  }

  static int32_t num_sms(const core::Problem& /*problem*/, int32_t fewest) {
    const int32_t wanted = emulator::num_sms();
    return wanted == 0 ? fewest : wanted;
  }

  // Declares the buffers of the call for the emulator's checks.
  static kernels::EmulatedLaunch make_context(const core::Kernel& row, const core::KernelPlan& plan,
                                              const core::Problem& problem,
                                              std::span<std::byte> workspace,
                                              const core::RunContext& /*context*/) {
    return {.name = row.name,
            .buffers = buffers_of(problem, plan.zeroed_workspace_bytes, workspace).merged()};
  }

  static void finish(const kernels::EmulatedLaunch& launch) { expect_clean(launch.result); }
};

}  // namespace pagoda::emulator
