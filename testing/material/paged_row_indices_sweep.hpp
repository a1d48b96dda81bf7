// Test support: the brute-force sweep of PagedRowIndices for one BN, against a plain gather.
// It lists what is wrong; the tests say that the list is empty.
#pragma once

#include <bit>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "emulator/machine/launch.hpp"
#include "testing/material/copy_tile.hpp"

namespace pagoda::sweep {

inline constexpr uint16_t kNan = 0x7fff;        // of bf16: what must not be read
inline constexpr uint16_t kUntouched = 0xabcd;  // of the output

// One cache of one sequence (batch 1 of 2) in shuffled pages, NaN wherever no key is, and the plain
// gather from it.
struct Cache {
  int page_size;  // 0: dense
  int columns;
  int max_keys;
  std::vector<uint16_t> data;  // [row, head, column]
  std::vector<int32_t> table;

  Cache(int page, int gran, int max) : page_size(page), columns(3 * gran), max_keys(max) {
    const int pages = page == 0 ? 0 : (max + page - 1) / page;
    const int rows = page == 0 ? 2 * max : 2 * pages * page;
    data.assign(static_cast<size_t>(rows * kHeads * columns), kNan);
    // Odd pages, backwards: the even ones stay NaN.
    for (int i = 0; i < pages; ++i) table.push_back(2 * (pages - 1 - i) + 1);
  }
  [[nodiscard]] int row_of(int key) const {
    return page_size == 0
               ? max_keys + key
               : table[static_cast<size_t>(key / page_size)] * page_size + key % page_size;
  }
  // Numbers where a copy of the tile reads: its keys in whole boxes of which one exists, the copied
  // columns. NaN everywhere else.
  void fill(int first_key, int count, int box_rows, int num_keys, int first_column,
            int num_columns) {
    data.assign(data.size(), kNan);
    for (int key = first_key; key < first_key + count; ++key) {
      if (first_key + (key - first_key) / box_rows * box_rows >= num_keys) continue;
      for (int c = first_column; c < first_column + num_columns; ++c) {
        at(key, c) = static_cast<uint16_t>((key * 131 + c * 7) & 0x3fff);
      }
    }
  }
  [[nodiscard]] uint16_t& at(int key, int column) {
    return data[static_cast<size_t>((row_of(key) * kHeads + kHead) * columns + column)];
  }
};

struct Findings {
  int cases = 0;
  std::vector<std::string> wrong;
};

template <class Indices, Swizzle swizzle>
void check_instance(int page_size, Findings& findings) {
  using Kernel = CopyTile<Indices, swizzle>;
  constexpr int BN = Indices::BN, BK = Kernel::BK, gran = Kernel::gran;
  constexpr bool is_peer = Indices::pair_cta && !Indices::is_leader;
  // The second tile of the sequence, or one in the middle of a page.
  const int base_row = BN;
  Cache cache(page_size, gran, 2 * BN + 8);
  const auto bytes = [](int elements) { return static_cast<uint64_t>(elements) * 2; };
  const operand::KVRows rows{
      .address = reinterpret_cast<uint64_t>(cache.data.data()),
      .num_rows = cache.data.size() / static_cast<size_t>(kHeads * cache.columns),
      .num_heads = kHeads,
      .depth = static_cast<uint64_t>(cache.columns),
      .row_stride_bytes = bytes(kHeads * cache.columns),
      .head_stride_bytes = bytes(cache.columns)};
  std::vector<int32_t> table(cache.table);
  table.insert(table.begin(), cache.table.size(), 0);  // batch 0: a page of NaN
  // Every number of valid pages: full ones, and a last one with three keys less.
  constexpr int kStep = operand::kv_sub_tile_rows(BN / 2, Indices::page_size);
  for (int valid_rows = 0; valid_rows <= BN; valid_rows += kStep) {
    for (const int cut : {0, 3}) {
      if (valid_rows < cut) continue;
      const int num_keys = base_row + valid_rows - cut;
      cache.fill(base_row, BN, Indices::eff_page, num_keys, kFirstChunk * gran, BK);
      const std::vector<int32_t> lengths{1, num_keys};
      std::vector<uint16_t> out(static_cast<size_t>(kSections * BN * BK), kUntouched);
      typename Kernel::Params params{
          .k = Kernel::KTile::tensor_map(rows),
          .k_folded = Kernel::KFoldedTile::tensor_map(rows),
          .v = Kernel::VTile::tensor_map(rows),
          .v_folded = Kernel::VFoldedTile::tensor_map(rows),
          .v_part = Kernel::VPartTile::tensor_map(rows),
          .paged = {},
          .dense = {.rows_per_batch = static_cast<uint32_t>(cache.max_keys)},
          .batch = 1,
          .base_row = static_cast<uint32_t>(base_row),
          .num_keys = static_cast<uint32_t>(num_keys),
          .out = out.data()};
      if (page_size != 0) {
        params.paged = {.pages = table.data(),
                        .table_stride = static_cast<int32_t>(cache.table.size()),
                        .lengths = lengths.data(),
                        .page_size = page_size,
                        .row_stride = static_cast<uint32_t>(page_size)};
      }
      const std::string name = "BN " + std::to_string(BN) + ", page " + std::to_string(page_size) +
                               (Indices::pair_cta ? is_peer ? ", peer" : ", leader" : "") +
                               (Indices::is_leader || Indices::pair_cta ? "" : ", not leader") +
                               ", swizzle " + std::to_string(static_cast<int>(swizzle)) +
                               ", keys " + std::to_string(num_keys);
      const emulator::Result result = emulator::launch<Kernel>(
          emulator::shape_of<Kernel>(name, {1}), params,
          {emulator::input("cache", cache.data.data(), cache.data.size()),
           emulator::input("table", table.data(), table.size()),
           emulator::input("lengths", lengths.data(), lengths.size()),
           emulator::output("out", out.data(), out.size())},
          {.mode = emulator::Mode::kRandom, .seed = static_cast<uint64_t>(++findings.cases)});
      if (!result.is_clean()) findings.wrong.push_back(to_string(result.reports[0]));
      // The plain gather.
      const auto expect_section = [&](Section section, int first_row, int tile_rows, int box_rows,
                                      bool zero, bool skip) {
        int wrong = 0;
        for (int r = 0; r < tile_rows; ++r) {
          // A box is copied if its first key exists.
          const bool is_copied = !skip && base_row + first_row + r / box_rows * box_rows < num_keys;
          for (int c = 0; c < BK; ++c) {
            const uint16_t got = out[static_cast<size_t>((section * BN + r) * BK + c)];
            const uint16_t want = is_copied
                                      ? cache.at(base_row + first_row + r, kFirstChunk * gran + c)
                                      : static_cast<uint16_t>(zero ? 0 : kUntouched);
            wrong += got != want ? 1 : 0;
          }
        }
        ++findings.cases;
        if (wrong != 0) {
          findings.wrong.push_back(name + ", section " + std::to_string(section) + ": " +
                                   std::to_string(wrong) + " elements differ");
        }
      };
      const int k_first = is_peer ? BN / 2 : 0;
      const bool k_exists = base_row + k_first < num_keys, v_exists = base_row < num_keys;
      expect_section(kK, k_first, Indices::k_tile_rows, Indices::k_issue_rows, false, false);
      expect_section(kKHalfPanels, k_first, Indices::k_tile_rows, Indices::k_issue_rows, false,
                     !Indices::pair_cta);
      expect_section(kKFolded, k_first, Indices::k_tile_rows, Indices::k_issue_rows, false,
                     !Kernel::folds_k || !k_exists);
      expect_section(kV, 0, BN, Kernel::VTile::box_rows, false, false);
      expect_section(kVZero, 0, BN, Kernel::VTile::box_rows, true, false);
      expect_section(kVFolded, 0, BN, Kernel::VTile::box_rows, false,
                     !Kernel::folds_v || !v_exists);
      expect_section(kVPart0, 0, BN / 2, Kernel::VPartTile::box_rows, false, false);
      expect_section(kVPart1, BN / 2, BN / 2, Kernel::VPartTile::box_rows, false, false);
    }
  }
}

// The instances take a minute to compile, so that an ordinary build has every other one, as on a chessboard: each role
// with every page size and every swizzle. -DPAGODA_FULL_SWEEP=ON, as the nightly workflow has it, compiles all.
#if !defined(PAGODA_FULL_SWEEP)
#define PAGODA_FULL_SWEEP 0
#endif
constexpr bool is_swept(int page_size, Swizzle swizzle, int role) {
  return PAGODA_FULL_SWEEP != 0 ||
         (std::bit_width(static_cast<unsigned>(page_size)) + static_cast<int>(swizzle) + role) %
                 2 ==
             0;
}

template <int BN, int page_size>
void check_page_size(Findings& findings) {
  if constexpr (operand::divide_one_another(page_size, BN)) {
    const auto check = [&]<Swizzle swizzle, bool pair_cta, bool is_leader>() {
      if constexpr (is_swept(page_size, swizzle, pair_cta == is_leader ? 0 : 1)) {
        check_instance<operand::PagedRowIndices<BN, page_size, pair_cta, is_leader>, swizzle>(
            page_size, findings);
      }
    };
    const auto check_roles = [&]<Swizzle swizzle>() {
      check.template operator()<swizzle, false, true>();
      check.template operator()<swizzle, false, false>();
      check.template operator()<swizzle, true, true>();
      check.template operator()<swizzle, true, false>();
    };
    check_roles.template operator()<Swizzle::kNone>();
    check_roles.template operator()<Swizzle::k32B>();
    check_roles.template operator()<Swizzle::k64B>();
    check_roles.template operator()<Swizzle::k128B>();
  }
}

template <int BN, int... page_sizes>
Findings check_page_sizes() {
  Findings findings;
  (check_page_size<BN, page_sizes>(findings), ...);
  return findings;
}

}  // namespace pagoda::sweep
