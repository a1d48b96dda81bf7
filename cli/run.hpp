// `pagoda run`: runs one problem, times it and checks it against the reference.
#pragma once

namespace CLI {
class App;
}

namespace pagoda::cli {

void add_run_command(CLI::App& app);

}  // namespace pagoda::cli
