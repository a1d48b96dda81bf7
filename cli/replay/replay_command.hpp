// `pagoda replay`: serves a request trace through a paged cache with continuous batching.
#pragma once

namespace CLI {
class App;
}

namespace pagoda::cli {

void add_replay_command(CLI::App& app);

}  // namespace pagoda::cli
