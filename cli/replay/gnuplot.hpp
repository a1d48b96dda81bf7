// A gnuplot script, stored next to its picture so that a reader can change it, and the process that
// draws it.
#pragma once

#include <cstdio>
#include <fmt/format.h>
#include <span>
#include <string>
#include <string_view>

#include "pagoda/status.hpp"

namespace pagoda::replay {

// Fails if there is no gnuplot that can write PNG files.
[[nodiscard]] Status find_gnuplot();

class Gnuplot {
 public:
  // Writes `directory`/`name`.gp, which draws `name`.png, `width` x `height` pixels.
  Gnuplot(std::string directory, std::string name, int width, int height);
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

  // Closes the script and draws it; fails if gnuplot fails or writes no picture.
  [[nodiscard]] Status finish();

 private:
  std::string directory_, name_;
  std::FILE* script_ = nullptr;
};

// `text` as a gnuplot string literal.
[[nodiscard]] std::string literal(std::string_view text);

}  // namespace pagoda::replay
