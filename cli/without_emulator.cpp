// Replaces emulate.cpp in a build without the emulator: no emu:* back ends are registered.
#include "cli/emulate.hpp"

namespace pagoda::cli {

bool has_emulator() { return false; }

void add_emulated_backends() {}

// These functions concern emulated back ends only, of which none is registered.
Status set_emulated_num_sms(int32_t /*num_sms*/) {
  return Status::unsupported("num_sms", "this build has no emulator");
}
void with_emulated_num_sms(int32_t /*num_sms*/, const std::function<void()>& body) { body(); }

void add_emulate_command(CLI::App& /*app*/) {}

}  // namespace pagoda::cli
