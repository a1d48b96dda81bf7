// The command in a build without the emulator: no emu:* back ends; main.cpp says how to get
// `emulate`.
#include "cli/emulate.hpp"

namespace pagoda::cli {

bool has_emulator() { return false; }

void add_emulated_backends() {}

// No back end that these are for is registered.
Status set_emulated_num_sms(int32_t /*num_sms*/) {
  return Status::unsupported("num_sms", "this build has no emulator");
}
void with_emulated_num_sms(int32_t /*num_sms*/, const std::function<void()>& body) { body(); }

void add_emulate_command(CLI::App& /*app*/) {}

}  // namespace pagoda::cli
