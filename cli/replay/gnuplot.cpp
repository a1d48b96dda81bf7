// popen(), a terminal and a common look.
#include "cli/replay/gnuplot.hpp"

#include <cstdlib>
#include <filesystem>

namespace pagoda::replay {

namespace {

constexpr const char* kLook =
    "set encoding utf8\n"
    "set border 3 lw 1 lc rgb '#444444'\n"
    "set tics nomirror textcolor rgb '#222222'\n"
    "set grid lw 1 lc rgb '#d8d8d8'\n"
    "set key noenhanced\n";

}  // namespace

Status find_gnuplot() {
  const int result = std::system(
      "gnuplot -e 'set terminal pngcairo' >/dev/null 2>&1 </dev/null");  // NOLINT(cert-env33-c)
  if (result == 0) return {};
  return {StatusCode::kNotFound, "report",
          "--report draws with gnuplot, and there is none that writes PNG files; install it with "
          "'apt-get install gnuplot-nox' or leave --report out"};
}

Gnuplot::Gnuplot(const std::string& png_path, int width, int height) : path_(png_path) {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
  pipe_ = popen("gnuplot -", "w");  // NOLINT(cert-env33-c)
  if (pipe_ == nullptr) return;
  command(fmt::format("set terminal pngcairo size {},{} font 'DejaVu Sans,11' background '#ffffff'",
                      width, height));
  command(fmt::format("set output {}", literal(path_)));
  command(kLook);
}

Gnuplot::~Gnuplot() {
  if (pipe_ != nullptr) pclose(pipe_);
}

void Gnuplot::command(std::string_view line) {
  if (pipe_ != nullptr) fmt::print(pipe_, "{}\n", line);
}

Status Gnuplot::finish() {
  const int result = pipe_ != nullptr ? pclose(pipe_) : -1;
  pipe_ = nullptr;
  std::error_code error;
  const auto size = std::filesystem::file_size(path_, error);
  if (result == 0 && !error && size > 0) return {};
  return {StatusCode::kInternal, "report", fmt::format("gnuplot did not write {}", path_)};
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
