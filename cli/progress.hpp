// Progress of a long command on stderr: a bar on a terminal, otherwise a plain line every ten
// seconds. Commands that end within a second print nothing.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace pagoda::cli {

class Progress {
 public:
  // `total` <= 0 = unknown: shows the count only. A silent progress prints nothing.
  Progress(std::string label, int64_t total, bool is_silent = false);
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap: redraws at most ten times a second (a bar) or every ten seconds (plain lines).
  void update(int64_t done, std::string_view note = {});
  void set_total(int64_t total) { total_ = total; }
  // Removes the bar so that other output can follow; the next update() draws it again.
  void clear();
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void draw_bar(int64_t done, std::string_view note);
  void print_line(int64_t done, std::string_view note);

  std::string label_;
  int64_t total_;
  bool is_silent_;
  bool is_bar_;
  bool is_drawn_ = false;
  Clock::time_point start_;
  Clock::time_point next_;
};

}  // namespace pagoda::cli
