// The file of `pagoda bench --cases`: named problems.
#pragma once

#include <string>
#include <vector>

#include "cli/bench_cases.hpp"

namespace pagoda::cli {

// JSON: a list of {"name": ..., "problem": {...}}, or an object whose "cases" is one. "-" reads
// stdin. A problem has the flags' names as keys; "family", if given, names the grid. Ends the
// command with a message if the file has another format.
[[nodiscard]] std::vector<BenchCase> read_case_file(const std::string& path);

}  // namespace pagoda::cli
