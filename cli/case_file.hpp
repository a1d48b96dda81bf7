// The file of `pagoda bench --cases`: named problems of the user's own.
#pragma once

#include <string>
#include <vector>

#include "cli/bench_cases.hpp"

namespace pagoda::cli {

// JSON: a list of {"name": ..., "problem": {...}}, or an object whose "cases" is one. "-" reads
// stdin. A problem has the flags' names as keys; "family", where given, names the grid. Ends the
// command with a message where the file is not that.
[[nodiscard]] std::vector<BenchCase> read_case_file(const std::string& path);

}  // namespace pagoda::cli
