// A process, a terminal and a common look.
#include "cli/replay/gnuplot.hpp"

#include <fcntl.h>
#include <filesystem>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace pagoda::replay {

namespace {

constexpr const char* kLook =
    "set encoding utf8\n"
    "set border 3 lw 1 lc rgb '#444444'\n"
    "set tics nomirror textcolor rgb '#222222'\n"
    "set grid lw 1 lc rgb '#d8d8d8'\n"
    "set key noenhanced\n";

// Runs gnuplot in `directory` without a shell; whether it ended well.
bool run_gnuplot(const std::string& directory, const char* first, const char* second) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, directory.c_str());
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const char* arguments[] = {"gnuplot", first, second, nullptr};
  pid_t child = 0;
  const int error = posix_spawnp(&child, "gnuplot", &actions, nullptr,
                                 const_cast<char* const*>(arguments), environ);
  posix_spawn_file_actions_destroy(&actions);
  int status = 0;
  return error == 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
         WEXITSTATUS(status) == 0;
}

}  // namespace

Status find_gnuplot() {
  if (run_gnuplot(".", "-e", "set terminal pngcairo")) return {};
  return {StatusCode::kNotFound, "report",
          "--report draws with gnuplot, and there is none that writes PNG files; install it with "
          "'apt-get install gnuplot-nox' or leave --report out"};
}

Gnuplot::Gnuplot(std::string directory, std::string name, int width, int height)
    : directory_(std::move(directory)), name_(std::move(name)) {
  std::error_code ignored;
  std::filesystem::remove(directory_ + "/" + name_ + ".png", ignored);
  script_ = std::fopen((directory_ + "/" + name_ + ".gp").c_str(), "w");
  command(fmt::format("set terminal pngcairo size {},{} font 'DejaVu Sans,11' background '#ffffff'",
                      width, height));
  command(fmt::format("set output {}", literal(name_ + ".png")));
  command(kLook);
}

Gnuplot::~Gnuplot() {
  if (script_ != nullptr) std::fclose(script_);
}

void Gnuplot::command(std::string_view line) {
  if (script_ != nullptr) fmt::print(script_, "{}\n", line);
}

Status Gnuplot::finish() {
  const bool is_written = script_ != nullptr && std::fclose(script_) == 0;
  script_ = nullptr;
  if (is_written && run_gnuplot(directory_, (name_ + ".gp").c_str(), nullptr)) {
    std::error_code error;
    const auto size = std::filesystem::file_size(directory_ + "/" + name_ + ".png", error);
    if (!error && size > 0) return {};
  }
  return {StatusCode::kInternal, "report",
          fmt::format("gnuplot did not draw {}/{}.png", directory_, name_)};
}

std::string literal(std::string_view text) {
  std::string text_literal = "'";
  for (const char c : text) {
    if (c == '\n') continue;
    text_literal += c == '\'' ? std::string("''") : std::string(1, c);
  }
  return text_literal + "'";
}

}  // namespace pagoda::replay
