// Where a measurement comes from: the revision, the command as it was typed, the state of the GPU.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace pagoda::cli {

// "1fa36b2" or "1fa36b2 (changed)"; empty outside a git checkout.
[[nodiscard]] std::string git_revision();

// As it was typed, without the folder of the program.
[[nodiscard]] std::string command_line();

// Driver, clocks, power and temperature of the first GPU as nvidia-smi tells them now; null where
// there is no such program.
[[nodiscard]] nlohmann::ordered_json gpu_state();

}  // namespace pagoda::cli
