// KV cache layouts and PagedRowIndices against plain arithmetic.
#include "operand/kv_operand.hpp"

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "emulator/machine/launch.hpp"

namespace pagoda::operand {
namespace {

using T = arch::BFloat16;

TEST(PagedRowIndices, get_row_follows_the_pages) {
  const PagedRowIndices<128, 32> paged{{1000, 32, 640, 7000}};
  EXPECT_EQ(paged.get_row(0), 1000U);
  EXPECT_EQ(paged.get_row(31), 1031U);
  EXPECT_EQ(paged.get_row(32), 32U);
  EXPECT_EQ(paged.get_row(127), 7031U);
  const PagedRowIndices<128, 256> one{{512}};
  EXPECT_EQ(one.get_row(127), 639U);
  EXPECT_EQ((PagedRowIndices<128, 0>::num_pages), 1);
  EXPECT_EQ((PagedRowIndices<128, 16, true>::num_pages), 8);  // all rows, for V
  EXPECT_EQ((PagedRowIndices<128, 16, true>::k_pages), 4);
}

TEST(PagedRowIndices, valid_pages_count_what_exists) {
  using Single = PagedRowIndices<128, 32>;
  EXPECT_EQ(Single::k_num_valid_pages(128, 128), 0U);
  EXPECT_EQ(Single::k_num_valid_pages(128, 129), 1U);
  EXPECT_EQ(Single::k_num_valid_pages(128, 160), 1U);
  EXPECT_EQ(Single::k_num_valid_pages(128, 161), 2U);
  EXPECT_EQ(Single::k_num_valid_pages(128, 100000), 4U);
  using Peer = PagedRowIndices<128, 32, true, false>;
  EXPECT_EQ(Peer::k_num_valid_pages(0, 64), 0U);
  EXPECT_EQ(Peer::k_num_valid_pages(0, 65), 1U);
  EXPECT_EQ(Peer::k_num_valid_pages(0, 128), 2U);
  EXPECT_EQ(Single::v_num_valid_pages<2>(0, 65, 1), 1U);
  EXPECT_EQ(Single::v_num_valid_pages<2>(0, 64, 1), 0U);
}

TEST(PagedRowIndices, page_sizes_map_to_instances) {
  const auto instance = [](int page_size) {
    int found = -1;
    dispatch_page_size<128>(page_size, [&]<int size>() { found = size; });
    return found;
  };
  EXPECT_EQ(instance(0), 0);
  EXPECT_EQ(instance(128), 0);
  EXPECT_EQ(instance(512), 0);
  for (const int size : {8, 16, 32, 64}) EXPECT_EQ(instance(size), size);
  // Other multiples of 8: a part of the page that divides the tile.
  EXPECT_EQ(instance(24), 8);
  EXPECT_EQ(instance(48), 16);
  EXPECT_EQ(instance(96), 32);
  EXPECT_EQ(instance(192), 64);
  for (const int size : {1, 2, 4, 12, 17, 300}) EXPECT_EQ(instance(size), -1) << size;
}

// Calls the operands in a kernel on the emulator.
struct Lookup {
  struct Params {
    DenseRows dense;
    RaggedRows ragged;
    PagedRows table, csr;
    arch::GlobalPtr<uint32_t> out;
  };
  struct Storage {};
  static constexpr int kThreads = 32;
  static void run(const Params& params) {
    arch::GlobalPtr<uint32_t> out = params.out;
    const auto record = [&](uint32_t value) {  // by lane 31, which looks up no page itself
      if (arch::thread_idx() == 31) arch::store(out, value);
      out = out + 1;
    };
    record(params.dense.num_keys(1));
    record(params.dense.populate<PagedRowIndices<64, 0>>(1, 64).rows[0]);
    record(params.ragged.num_keys(1));
    record(params.ragged.populate<PagedRowIndices<64, 0>>(1, 64).rows[0]);
    for (const PagedRows* rows : {&params.table, &params.csr}) {
      record(rows->num_keys(1));
      const auto indices = rows->populate<PagedRowIndices<64, 16>>(1, 64);
      for (const uint32_t row : indices.rows) record(row);
      const auto halves = rows->populate<PagedRowIndices<64, 8>>(1, 64);  // half a page each
      for (const uint32_t row : halves.rows) record(row);
      record(rows->row_of(1, 70));
    }
  }
};

TEST(KVOperand, every_layout_finds_its_rows) {
  const std::vector<int32_t> lengths{3, 100}, offsets{0, 7, 107};
  const std::vector<int32_t> table{9, 9, 9, 9, 9, 9, 9, 9, 5, 2, 8, 1, 30, 31, 32, -1};  // [2, 8]
  const std::vector<int32_t> pages{4, 5, 2, 8, 1, 30, 31, 32}, first_page{0, 1, 8};
  const std::vector<int32_t> last_page_lengths{3, 4};
  std::vector<uint32_t> out(32, 0xdead);
  const auto bytes = [](const std::vector<int32_t>& v, const char* name) {
    return emulator::input(name, v.data(), v.size());
  };
  const emulator::Result result = emulator::launch<Lookup>(
      emulator::shape_of<Lookup>("lookup", {1}),
      {.dense = {.rows_per_batch = 200, .lengths = lengths.data()},
       .ragged = {.offsets = offsets.data()},
       .table = {.pages = table.data(),
                 .table_stride = 8,
                 .lengths = lengths.data(),
                 .page_size = 16,
                 .row_stride = 32},
       .csr = {.pages = pages.data(),
               .first_page_of = first_page.data(),
               .lengths = last_page_lengths.data(),
               .page_size = 16,
               .row_stride = 32},
       .out = out.data()},
      {bytes(lengths, "lengths"), bytes(offsets, "offsets"), bytes(table, "table"),
       bytes(pages, "pages"), bytes(first_page, "first_page"),
       bytes(last_page_lengths, "last_page_lengths"),
       emulator::output("out", out.data(), out.size())});
  ASSERT_TRUE(result.is_clean()) << to_string(result.reports[0]);
  // Keys 64..127 of 100: pages 4, 5, 6 of the sequence exist, the fourth does not and is not read.
  constexpr uint32_t p4 = 30 * 32, p5 = 31 * 32, p6 = 32 * 32, none = kOutOfBoundsRow;
  std::vector<uint32_t> expected{100, 264, 100, 71};
  for (int layout = 0; layout < 2; ++layout) {
    expected.insert(expected.end(), {100, p4, p5, p6, none});
    expected.insert(expected.end(), {p4, p4 + 8, p5, p5 + 8, p6, none, none, none});
    expected.push_back(p4 + 6);
  }
  EXPECT_EQ(out, expected);
}

}  // namespace
}  // namespace pagoda::operand
