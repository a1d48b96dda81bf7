// `pagoda emulate`: runs GPU kernels on the emulator and prints what it finds.
#pragma once

namespace CLI {
class App;
}

namespace pagoda::cli {

void add_emulate_command(CLI::App& app);

}  // namespace pagoda::cli
