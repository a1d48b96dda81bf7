// Asks git, /proc and nvidia-smi.
#include "cli/provenance.hpp"

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace pagoda::cli {
namespace {

std::string output_of(const std::string& command) {
  std::string text;
  if (std::FILE* pipe = popen(command.c_str(), "r")) {
    std::array<char, 256> chunk{};
    while (std::fgets(chunk.data(), chunk.size(), pipe) != nullptr) text += chunk.data();
    pclose(pipe);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// The parts between ", ".
std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    parts.push_back(part.substr(std::min(part.size(), part.find_first_not_of(' '))));
  }
  return parts;
}

}  // namespace

std::string git_revision() {
  std::string revision = output_of("git rev-parse --short HEAD 2>/dev/null");
  if (revision.empty()) return revision;
  const bool is_clean = output_of("git status --porcelain -uno 2>/dev/null").empty();
  return revision + (is_clean ? "" : " (changed)");
}

std::string command_line() {
  std::ifstream file("/proc/self/cmdline");
  std::string text;
  for (std::string argument; std::getline(file, argument, '\0');) {
    text += text.empty() ? "pagoda" : " " + argument;
  }
  return text;
}

nlohmann::ordered_json gpu_state() {
  const std::string fields =
      "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.draw,power."
      "limit,"
      "temperature.gpu";
  const std::string text =
      output_of("nvidia-smi --id=0 --format=csv,noheader --query-gpu=" + fields + " 2>/dev/null");
  const std::vector<std::string> names = split(fields), values = split(text);
  if (values.size() != names.size()) return nullptr;
  nlohmann::ordered_json state;
  for (size_t i = 0; i < names.size(); ++i) state[names[i]] = values[i];
  return state;
}

}  // namespace pagoda::cli
