// JSON to cases.
#include "cli/case_file.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/json_io.hpp"
#include "cli/terminal.hpp"

namespace pagoda::cli {

std::vector<BenchCase> read_case_file(const std::string& path) {
  nlohmann::json file = read_json_file("--cases", path == "-" ? "/dev/stdin" : path);
  if (file.is_object() && file.contains("cases")) {
    nlohmann::json inner = file["cases"];
    file = std::move(inner);
  }
  if (!file.is_array()) fail(fmt::format("--cases: '{}' holds no list of cases", path));
  if (file.empty()) fail(fmt::format("--cases: '{}' has no cases", path));
  std::vector<BenchCase> cases;
  for (const nlohmann::json& entry : file) {
    if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string() ||
        !entry.contains("problem")) {
      fail(fmt::format(R"(--cases: entry {} is no {{"name": ..., "problem": {{...}}}})",
                       cases.size()));
    }
    const auto family = entry.find("family");
    const bool has_family = family != entry.end() && family->is_string();
    cases.push_back({entry["name"].get<std::string>(),
                     has_family ? family->get<std::string>() : "file",
                     parse_problem_json(entry["problem"])});
  }
  return cases;
}

}  // namespace pagoda::cli
