// KVTile: the address of every row of a tile equals that of a look-up by division, for every page
// size and first key.
#include "operand/kv_tile.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "testing/material/expect_report.hpp"
#include "testing/material/run_on_machine.hpp"

namespace pagoda::operand {
namespace {

using emulator::all_reports;

// Only addresses: nothing is stored there.
KVSource source() {
  KVSource source;
  source.data = arch::GlobalPtr<const char>::at_address(0x10000);
  source.outer_bytes = 1'000'003;
  source.row_bytes = 34;
  return source;
}
uint64_t address(int64_t outer, int64_t row) {
  return 0x10000 + static_cast<uint64_t>(outer * 1'000'003 + row * 34);
}

// Rows at a wrong address, over tiles that start at every key of [0, last_first_key].
template <int BN>
int wrong_rows(int page_size, bool is_csr, int last_first_key) {
  const int num_pages = (last_first_key + BN) / page_size + 1;
  const int first_of_sequence = is_csr ? 3 : num_pages;
  std::vector<int32_t> pages(static_cast<size_t>(first_of_sequence), -1);  // of sequence 0
  for (int i = 0; i < num_pages; ++i) pages.push_back((i * 7 + 3) % 1009);
  const std::vector<int32_t> first_page{0, first_of_sequence, first_of_sequence + num_pages};
  KeyRows keys;
  keys.kind = KeyRowsKind::kPaged;
  keys.paged.pages = pages.data();
  keys.paged.page_size = page_size;
  if (is_csr) {
    keys.paged.first_page_of = first_page.data();
  } else {
    keys.paged.table_stride = num_pages;
  }
  int wrong = 0;
  const emulator::Result result = emulator::run_on_machine(
      {emulator::input("pages", pages.data(), pages.size()),
       emulator::input("first pages", first_page.data(), first_page.size())},
      [&] {
        for (int first = 0; first <= last_first_key; ++first) {
          const KVTile<BN> tile(source(), keys, 1, first);
          for (int row = 0; row < BN; ++row) {
            const int key = first + row;
            const int32_t page = pages[static_cast<size_t>(first_of_sequence + key / page_size)];
            wrong += tile.row(row).address() == address(page, key % page_size) ? 0 : 1;
          }
        }
      });
  EXPECT_EQ(all_reports(result), "");
  return wrong;
}

TEST(KVTile, rows_in_pages_of_every_size_are_found_without_a_division) {
  for (int page_size = 3; page_size <= 70; ++page_size) {
    EXPECT_EQ(wrong_rows<32>(page_size, page_size % 2 == 0, page_size + 2), 0) << page_size;
    EXPECT_EQ(wrong_rows<64>(page_size, page_size % 2 == 1, page_size + 2), 0) << page_size;
    EXPECT_EQ(wrong_rows<128>(page_size, page_size % 2 == 0, page_size + 2), 0) << page_size;
  }
  for (const int page_size : {1, 2, 127, 128, 129, 192, 255, 256, 257, 512}) {
    EXPECT_EQ(wrong_rows<64>(page_size, false, page_size + 2), 0) << page_size;
    EXPECT_EQ(wrong_rows<128>(page_size, false, page_size + 2), 0) << page_size;
    EXPECT_EQ(wrong_rows<256>(page_size, false, page_size + 2), 0) << page_size;
  }
}

TEST(KVTile, rows_of_dense_and_ragged_caches_follow_each_other) {
  const std::vector<int32_t> offsets{0, 41, 200};
  for (const KeyRowsKind kind : {KeyRowsKind::kDense, KeyRowsKind::kRagged}) {
    KeyRows keys;
    keys.kind = kind;
    keys.ragged.offsets = offsets.data();
    const emulator::Result result =
        emulator::run_on_machine({emulator::input("offsets", offsets.data(), offsets.size())}, [&] {
          for (const int first : {0, 1, 37, 64}) {
            const KVTile<64> tile(source(), keys, 1, first);
            for (int row = 0; row < 64; ++row) {
              const uint64_t expected = kind == KeyRowsKind::kDense ? address(1, first + row)
                                                                    : address(0, 41 + first + row);
              EXPECT_EQ(tile.row(row).address(), expected) << first << " + " << row;
            }
          }
        });
    EXPECT_EQ(all_reports(result), "");
  }
}

TEST(KVTile, a_tile_inside_of_one_page_looks_it_up_once) {
  // Page 0 of the table is all that may be read.
  const std::vector<int32_t> pages{5};
  KeyRows keys;
  keys.kind = KeyRowsKind::kPaged;
  keys.paged.pages = pages.data();
  keys.paged.page_size = 128;
  const emulator::Result result =
      emulator::run_on_machine({emulator::input("pages", pages.data(), pages.size())}, [&] {
        const KVTile<64> tile(source(), keys, 0, 64);
        for (int row = 0; row < 64; ++row) {
          EXPECT_EQ(tile.row(row).address(), address(5, 64 + row));
        }
      });
  EXPECT_EQ(all_reports(result), "");
  // The constructor's look-up is the only one, beside those of the machine.
  EXPECT_EQ(result.statistics.accesses, 1U);
}

}  // namespace
}  // namespace pagoda::operand
