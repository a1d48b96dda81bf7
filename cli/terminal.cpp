// Colours, tables, errors and exit codes; nothing specific to attention.
#include "cli/terminal.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

namespace pagoda::cli {
namespace {

const char* escape_code(Style style) {
  switch (style) {
    case Style::kBold: return "\033[1m";
    case Style::kDim: return "\033[2m";
    case Style::kRed: return "\033[31m";
    case Style::kGreen: return "\033[32m";
    case Style::kYellow: return "\033[33m";
    case Style::kCyan: return "\033[36m";
  }
  return "";
}

std::string padded(const std::string& cell, size_t width, Table::Align align) {
  const size_t fill = width - std::min(width, display_width(cell));
  return align == Table::Align::kRight ? std::string(fill, ' ') + cell
                                       : cell + std::string(fill, ' ');
}

}  // namespace

void finish_with(int exit_code) {
  if (exit_code != 0) throw CLI::RuntimeError(exit_code);
}

void fail(std::string_view message, int exit_code) {
  std::fflush(stdout);
  fmt::print(stderr, "pagoda: error: {}\n", message);
  throw CLI::RuntimeError(exit_code);
}

void warn(std::string_view message) {
  std::fflush(stdout);
  fmt::print(stderr, "pagoda: warning: {}\n", message);
}

void require_range(std::string_view flag, int64_t value, int64_t low, int64_t high) {
  if (value < low && high == INT64_MAX) fail(fmt::format("{}: {} is below {}", flag, value, low));
  if (value >= low && value <= high) return;
  fail(fmt::format("{}: {} is not from {} to {}", flag, value, low, high));
}

bool is_terminal(std::FILE* stream) { return isatty(fileno(stream)) != 0; }

bool stdout_has_color() {
  const char* no_color = std::getenv("NO_COLOR");
  return (no_color == nullptr || *no_color == '\0') && is_terminal(stdout);
}

std::string paint(std::string_view text, Style style) {
  if (!stdout_has_color()) return std::string(text);
  return fmt::format("{}{}\033[0m", escape_code(style), text);
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  bool in_escape = false;
  for (const char c : text) {
    if (c == '\033') {
      in_escape = true;
    } else if (in_escape) {
      in_escape = c != 'm';
    } else if ((static_cast<unsigned char>(c) & 0xc0U) != 0x80U) {  // not a continuation byte
      ++width;
    }
  }
  return width;
}

std::string Table::str() const {
  std::vector<size_t> widths;
  for (size_t i = 0; i < columns_.size(); ++i) {
    size_t width = display_width(columns_[i].title);
    for (const auto& row : rows_) {
      if (i < row.size()) width = std::max(width, display_width(row[i]));
    }
    widths.push_back(width);
  }
  size_t total = 2 * (columns_.empty() ? 0 : columns_.size() - 1);
  for (const size_t width : widths) total += width;

  const auto line = [&](const auto& cell_at) {
    std::string text;
    for (size_t i = 0; i < columns_.size(); ++i) {
      text += (i == 0 ? "" : "  ") + padded(cell_at(i), widths[i], columns_[i].align);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text;
  };
  std::string result =
      paint(line([&](size_t i) { return columns_[i].title; }), Style::kBold) + "\n";
  for (const auto& row : rows_) {
    if (row.empty()) {
      result += paint(std::string(total, '-'), Style::kDim) + "\n";
    } else {
      result += line([&](size_t i) { return i < row.size() ? row[i] : std::string(); }) + "\n";
    }
  }
  return result;
}

void Table::print() const {
  fmt::print("{}", str());
  std::fflush(stdout);
}

std::string format_bytes(double bytes) {
  static constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string format_seconds(double seconds) {
  if (seconds < 1e-6) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

std::string format_count(long long count) {
  const std::string digits = fmt::format("{}", count);
  const size_t first = count < 0 ? 1 : 0;
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > first && (digits.size() - i) % 3 == 0) text.push_back(',');
    text.push_back(digits[i]);
  }
  return text;
}

}  // namespace pagoda::cli
