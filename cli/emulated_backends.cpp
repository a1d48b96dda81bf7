// Registers the emulated back ends for the command.
#include "cli/emulate.hpp"
#include "cli/terminal.hpp"
#include "pagoda/emulator.hpp"

namespace pagoda::cli {

bool has_emulator() { return true; }

void add_emulated_backends() {
  if (const Status status = register_emulator(); !status) warn(status.message());
}

Status set_emulated_num_sms(int32_t num_sms) { return register_emulator({.num_sms = num_sms}); }

void with_emulated_num_sms(int32_t num_sms, const std::function<void()>& body) {
  const EmulatorScope scope({.num_sms = num_sms});
  body();
}

}  // namespace pagoda::cli
