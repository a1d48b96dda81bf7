// `pagoda check`: runs the conformance table.
#pragma once

namespace CLI {
class App;
}

namespace pagoda::cli {

void add_check_command(CLI::App& app);

}  // namespace pagoda::cli
