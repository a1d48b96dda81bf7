// The command in a build without the emulator: no emu:* back ends; main.cpp says how to get `emulate`.
#include "cli/emulate.hpp"

namespace pagoda::cli {

bool has_emulator() { return false; }

void add_emulated_backends() {}

void add_emulate_command(CLI::App& /*app*/) {}

}  // namespace pagoda::cli
