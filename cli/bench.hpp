// `pagoda bench`: grids of problems, timed against the measured roofline.
#pragma once

namespace CLI {
class App;
}

namespace pagoda::cli {

void add_bench_command(CLI::App& app);

}  // namespace pagoda::cli
