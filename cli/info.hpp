// `pagoda info`: what this build and this machine can do.
#pragma once

namespace CLI {
class App;
}

namespace pagoda::cli {

void add_info_command(CLI::App& app);

}  // namespace pagoda::cli
