// A pipe to gnuplot, the library that draws the report. Nothing about what is drawn.
#pragma once

#include <cstdio>
#include <fmt/format.h>
#include <span>
#include <string>
#include <string_view>

#include "pagoda/status.hpp"

namespace pagoda::replay {

// Fails where there is no gnuplot that can write PNG files.
[[nodiscard]] Status find_gnuplot();

class Gnuplot {
 public:
  // Draws into `png_path`, `width` x `height` pixels.
  Gnuplot(const std::string& png_path, int width, int height);
  ~Gnuplot();
  Gnuplot(const Gnuplot&) = delete;
  Gnuplot& operator=(const Gnuplot&) = delete;

  void command(std::string_view line);

  // Defines the data block $name; `write_row(i)` gives line i of `rows`.
  template <typename WriteRow>
  void data(std::string_view block, size_t rows, const WriteRow& write_row) {
    command(fmt::format("${} << END_OF_DATA", block));
    for (size_t i = 0; i < rows; ++i) command(write_row(i));
    command("END_OF_DATA");
  }

  // Ends the plot; fails where gnuplot does or where no picture was written.
  [[nodiscard]] Status finish();

 private:
  std::string path_;
  std::FILE* pipe_ = nullptr;
};

// `text` as a gnuplot string literal.
[[nodiscard]] std::string literal(std::string_view text);

}  // namespace pagoda::replay
