// Output of every command: colours, tables, errors and exit codes. Not the progress bar.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace pagoda::cli {

// Exit codes of the command: 0 success, 1 a check failed, 2 invalid arguments.
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;

// Ends the running command with this exit code (0 returns normally) by throwing CLI::RuntimeError,
// which main() catches: CLI11 callbacks can't return an exit code.
void finish_with(int exit_code);

// Prints "pagoda: error: MESSAGE" to stderr and ends the command. The message names the flag.
[[noreturn]] void fail(std::string_view message, int exit_code = kExitUsage);
// Prints "pagoda: warning: MESSAGE" to stderr.
void warn(std::string_view message);
// Fails with "FLAG: VALUE is not from LOW to HIGH" or "FLAG: VALUE is below LOW".
void require_range(std::string_view flag, int64_t value, int64_t low, int64_t high = INT64_MAX);

enum class Style { kBold, kDim, kRed, kGreen, kYellow, kCyan };

// Colours are used only if stdout is a terminal and NO_COLOR is unset or empty.
[[nodiscard]] bool stdout_has_color();
[[nodiscard]] bool is_terminal(std::FILE* stream);
// `text` between the escape codes of `style` if stdout has colour.
[[nodiscard]] std::string paint(std::string_view text, Style style);
// Columns of `text` on the screen: escape codes count nothing, a UTF-8 character counts one.
[[nodiscard]] size_t display_width(std::string_view text);

// A table with aligned columns. Cells may be painted.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // A row shorter than the header is filled with empty cells.
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // A thin line between rows.
  void add_separator() { rows_.emplace_back(); }
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] std::string str() const;
  void print() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// "1.5 KiB", "2.0 GiB".
[[nodiscard]] std::string format_bytes(double bytes);
// "12.3 us", "4.56 ms", "1.20 s".
[[nodiscard]] std::string format_seconds(double seconds);
// Integer with thousands separators: "12,345".
[[nodiscard]] std::string format_count(long long count);

}  // namespace pagoda::cli
