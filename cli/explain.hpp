// `pagoda explain`: which kernels were considered for a problem, and why each was rejected.
#pragma once

namespace CLI {
class App;
}

namespace pagoda::cli {

void add_explain_command(CLI::App& app);

}  // namespace pagoda::cli
