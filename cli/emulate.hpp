// `pagoda emulate`: runs GPU kernels on the emulator and prints what it finds. A build without the
// emulator (PAGODA_BUILD_EMULATOR=OFF) compiles without_emulator.cpp instead.
#pragma once

#include <cstdint>
#include <functional>

#include "pagoda/status.hpp"

namespace CLI {
class App;
}

namespace pagoda::cli {

// Whether this build has the emulator.
bool has_emulator();

// Registers emu:sm90 and emu:sm100.
void add_emulated_backends();

// Gives them so many multiprocessors (pagoda/emulator.hpp): for the process, or for what `body`
// plans.
[[nodiscard]] Status set_emulated_num_sms(int32_t num_sms);
void with_emulated_num_sms(int32_t num_sms, const std::function<void()>& body);

void add_emulate_command(CLI::App& app);

}  // namespace pagoda::cli
