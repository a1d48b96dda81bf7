// The emulated back ends become back ends of the command.
#include "cli/emulate.hpp"
#include "cli/terminal.hpp"
#include "pagoda/emulator.hpp"

namespace pagoda::cli {

bool has_emulator() { return true; }

void add_emulated_backends() {
  if (const Status status = register_emulator(); !status) warn(status.message());
}

}  // namespace pagoda::cli
