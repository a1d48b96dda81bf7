// The progress bar and its plain-line form.
#include "cli/progress.hpp"

#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <utility>

#include "cli/terminal.hpp"

namespace pagoda::cli {
namespace {

constexpr auto kFirstDraw = std::chrono::milliseconds(1000);
constexpr auto kRedraw = std::chrono::milliseconds(100);
constexpr auto kPlainLine = std::chrono::seconds(10);
constexpr size_t kBarWidth = 24;

size_t terminal_columns() {
  winsize size{};
  if (ioctl(fileno(stderr), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string remaining(double elapsed, int64_t done, int64_t total) {
  if (done <= 0 || total <= done) return {};
  const double left = elapsed * static_cast<double>(total - done) / static_cast<double>(done);
  return fmt::format(", {:.0f} s left", left);
}

}  // namespace

Progress::Progress(std::string label, int64_t total, bool is_silent)
    : label_(std::move(label)),
      total_(total),
      is_silent_(is_silent),
      is_bar_(is_terminal(stderr)),
      start_(Clock::now()),
      next_(start_ + (is_bar_ ? Clock::duration(kFirstDraw) : Clock::duration(kPlainLine))) {}

void Progress::update(int64_t done, std::string_view note) {
  if (is_silent_) return;
  const auto now = Clock::now();
  if (now < next_) return;
  next_ = now + (is_bar_ ? Clock::duration(kRedraw) : Clock::duration(kPlainLine));
  if (is_bar_) {
    draw_bar(done, note);
  } else {
    print_line(done, note);
  }
}

void Progress::draw_bar(int64_t done, std::string_view note) {
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  std::string text = label_ + " ";
  if (total_ > 0) {
    const int64_t clamped = std::clamp<int64_t>(done, 0, total_);
    const auto filled = static_cast<size_t>(clamped * static_cast<int64_t>(kBarWidth) / total_);
    text += fmt::format("[{:.<{}}] {}/{}{}", std::string(filled, '#'), kBarWidth, done, total_,
                        remaining(elapsed, done, total_));
  } else {
    text += fmt::format("{} in {:.0f} s", done, elapsed);
  }
  if (!note.empty()) text += fmt::format("  {}", note);
  text.resize(std::min(text.size(), terminal_columns() - 1));
  fmt::print(stderr, "\r\033[K{}", text);
  std::fflush(stderr);
  is_drawn_ = true;
}

void Progress::print_line(int64_t done, std::string_view note) {
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  const std::string of = total_ > 0 ? fmt::format("/{}", total_) : "";
  fmt::print(stderr, "{}: {}{} after {:.0f} s{}{}{}\n", label_, done, of, elapsed,
             remaining(elapsed, done, total_), note.empty() ? "" : "; ", note);
}

void Progress::clear() {
  if (is_drawn_) {
    fmt::print(stderr, "\r\033[K");
    std::fflush(stderr);
  }
  is_drawn_ = false;
}

void Progress::finish() {
  clear();
  is_silent_ = true;
}

}  // namespace pagoda::cli
