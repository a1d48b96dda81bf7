// `pagoda explain`: the engine's decision on every kernel for a problem, and its reason.
#pragma once

namespace CLI {
class App;
}

namespace pagoda::cli {

void add_explain_command(CLI::App& app);

}  // namespace pagoda::cli
