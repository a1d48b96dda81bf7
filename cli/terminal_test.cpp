// Tests of table layout and number formats.
#include "cli/terminal.hpp"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace pagoda::cli {
namespace {

TEST(Terminal, table_aligns_columns_and_ignores_escape_codes) {
  Table table({{"name"}, {"n", Table::Align::kRight}});
  table.add({"a", "1"});
  table.add({"\033[31mlong\033[0m", "1234"});
  EXPECT_EQ(table.str(), "name     n\na        1\n\033[31mlong\033[0m  1234\n");
}

TEST(Terminal, width_counts_characters_not_bytes) {
  EXPECT_EQ(display_width("\033[1mab\033[0m"), 2U);
  EXPECT_EQ(display_width("\xc2\xb5s"), 2U);
}

TEST(Terminal, stdout_of_a_test_has_no_color) { EXPECT_EQ(paint("x", Style::kRed), "x"); }

TEST(Terminal, bytes_use_binary_units) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
  EXPECT_EQ(format_bytes(3.0 * (1LL << 40)), "3.0 TiB");
}

TEST(Terminal, counts_have_separators) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(1234567), "1,234,567");
  EXPECT_EQ(format_count(-123), "-123");
  EXPECT_EQ(format_count(-1234), "-1,234");
}

TEST(Terminal, finish_with_throws_the_exit_code_and_zero_returns) {
  EXPECT_NO_THROW(finish_with(0));
  try {
    finish_with(1);
    FAIL() << "did not throw";
  } catch (const CLI::RuntimeError& error) {
    EXPECT_EQ(error.get_exit_code(), 1);
  }
}

}  // namespace
}  // namespace pagoda::cli
