// The origin of a measurement: revision, command line, state of the GPU.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace pagoda::cli {

// "1fa36b2" or "1fa36b2 (changed)"; empty outside a git checkout.
[[nodiscard]] std::string git_revision();

// The command line, without the folder of the program.
[[nodiscard]] std::string command_line();

// Driver, clocks, power and temperature of the first GPU by nvidia-smi; null without that program.
[[nodiscard]] nlohmann::ordered_json gpu_state();

}  // namespace pagoda::cli
