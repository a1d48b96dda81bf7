// The emulated back ends become back ends of the command.
#include "cli/emulate.hpp"
#include "cli/terminal.hpp"
#include "engine/registry.hpp"
#include "kernels/emulated/sm100_backend.hpp"
#include "kernels/emulated/sm90_backend.hpp"

namespace pagoda::cli {

bool has_emulator() { return true; }

void add_emulated_backends() {
  for (const auto* backend : {&emulated::sm90_backend(), &emulated::sm100_backend()}) {
    const Status status = engine::register_backend(*backend);
    if (!status) warn(status.message());
  }
}

}  // namespace pagoda::cli
