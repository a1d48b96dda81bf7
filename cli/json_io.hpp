// JSON that several commands write: the machine, the ceilings, the back ends.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "bench/ceilings/ceilings.hpp"
#include "bench/machine.hpp"

namespace pagoda::cli {

[[nodiscard]] nlohmann::ordered_json to_json(const bench::Machine& machine);
[[nodiscard]] nlohmann::ordered_json to_json(const bench::Ceilings& ceilings);
[[nodiscard]] nlohmann::ordered_json backends_to_json();

// Now, as "2031-05-06T07:08:09Z".
[[nodiscard]] std::string utc_timestamp();

// Parses a whole file; on failure ends the command with a message that names `flag`.
[[nodiscard]] nlohmann::json read_json_file(const std::string& flag, const std::string& path);
// Writes `json` with a final newline; ends the command likewise.
void write_json_file(const std::string& flag, const std::string& path,
                     const nlohmann::ordered_json& json);

}  // namespace pagoda::cli
