// Test support: the brute-force sweep of PagedRowIndices for one BN. A kernel copies K and V of one
// tile in every way and writes out what lies in shared memory; the host compares with a plain gather.
#pragma once

#include <cstdint>
#include <gtest/gtest.h>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "arch/emu/runtime/launch.hpp"
#include "arch/named_barrier.hpp"
#include "arch/thread.hpp"
#include "arch/warp.hpp"
#include "operand/kv_operand.hpp"
#include "operand/paged_row_indices.hpp"

namespace pagoda::sweep {

using arch::Swizzle;
using T = arch::BFloat16;

inline constexpr uint16_t kNan = 0x7fff;        // of bf16: what must not be read
inline constexpr uint16_t kUntouched = 0xabcd;  // of the output
inline constexpr int kHeads = 2, kHead = 1;
inline constexpr int kChunks = 2, kFirstChunk = 1;  // of the three that the cache has

// Copies of one tile; each fills the start of `stage` and is dumped row by row.
enum Section : int {
  kK,
  kKHalfPanels,
  kKFolded,
  kV,
  kVZero,
  kVFolded,
  kVPart0,
  kVPart1,
  kSections
};

template <class Indices_, Swizzle swizzle>
struct CopyTile {
  using Indices = Indices_;
  static constexpr int BN = Indices::BN;
  static constexpr int gran = static_cast<int>(swizzle_width_bytes(swizzle)) / 2;
  static constexpr int BK = kChunks * gran;
  static constexpr bool folds_k = Indices::k_pages == 1 && !Indices::pair_cta;
  static constexpr bool folds_v = Indices::num_pages == 1;
  using KTile = KVTmaTile<T, Indices::k_issue_rows, BK, swizzle>;
  using KFoldedTile = KVTmaTile<T, Indices::k_issue_rows, BK, swizzle, true>;
  using VTile = KVTmaTile<T, Indices::template v_issue_rows<1>, BK, swizzle>;
  using VFoldedTile = KVTmaTile<T, Indices::template v_issue_rows<1>, BK, swizzle, true>;
  using VPartTile = KVTmaTile<T, Indices::template v_issue_rows<2>, BK, swizzle>;

  struct Params {
    arch::TensorMap k, k_folded, v, v_folded, v_part;
    PagedRows paged;
    DenseRows dense;
    int32_t batch;
    uint32_t base_row, num_keys;
    uint16_t* out;  // [kSections, BN, BK]
  };
  struct Storage {
    arch::SharedArray<T, BN * BK, 1024> stage;
    arch::MBarrier mbar;
  };
  static constexpr int kThreads = 32;

  // Expects the bytes of `rows` rows, copies, waits, and writes those rows of panels of smem_rows.
  template <class Copy>
  static void section(Storage& storage, const Params& params, Section which, uint32_t& phase,
                      uint32_t rows, int smem_rows, Copy copy) {
    const int32_t elect = arch::elect_one();
    storage.mbar.arrive_expect_tx_if(elect, rows * BK * 2);
    copy(elect);
    storage.mbar.wait(phase & 1U);
    ++phase;
    const uint32_t base = storage.stage.data().address();
    for (int i = arch::lane_idx(); i < static_cast<int>(rows) * BK / 8; i += 32) {
      const int row = i / (BK / 8), column = i % (BK / 8) * 8;
      const auto dense =
          static_cast<uint32_t>(((column / gran) * smem_rows + row) * gran + column % gran) * 2;
      const auto place = static_cast<int32_t>(swizzle_address(base + dense, swizzle) - base);
      const auto words = arch::load((storage.stage.at(place / 2)).template as<arch::Words<4>>());
      auto* const to = params.out + (which * BN + row) * BK + column;
      arch::store(reinterpret_cast<arch::Words<4>*>(to), words);
    }
    arch::syncwarp();
  }

  static void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    if (arch::thread_idx() == 0) {
      storage.mbar.init(1);
      arch::fence_mbarrier_init();
    }
    arch::syncthreads();
    Indices indices;
    if constexpr (Indices::num_pages == 1) {
      indices = params.paged.pages != nullptr
                    ? params.paged.template populate<Indices>(params.batch, params.base_row)
                    : params.dense.template populate<Indices>(params.batch, params.base_row);
    } else {
      indices = params.paged.template populate<Indices>(params.batch, params.base_row);
    }
    const uint32_t k_pages = Indices::k_num_valid_pages(params.base_row, params.num_keys);
    const uint32_t v_pages =
        Indices::template v_num_valid_pages<1>(params.base_row, params.num_keys);
    const auto stage = storage.stage.data();
    uint32_t phase = 0;
    constexpr uint32_t first = kFirstChunk * gran;
    const uint32_t k_rows = k_pages * Indices::k_issue_rows, v_rows = v_pages * VTile::box_rows;
    const bool is_partial = k_pages < Indices::k_pages;
    section(storage, params, kK, phase, k_rows, BN, [&](int32_t elect) {
      if (is_partial) {
        indices.template tma_copy_k<true>(KTile{&params.k}, stage, storage.mbar, kHead, elect,
                                          k_pages, first);
      } else {
        indices.template tma_copy_k<false>(KTile{&params.k}, stage, storage.mbar, kHead, elect,
                                           k_pages, first, arch::Eviction::kFirst);
      }
    });
    if constexpr (Indices::pair_cta) {
      section(storage, params, kKHalfPanels, phase, k_rows, BN / 2, [&](int32_t elect) {
        indices.template tma_copy_k<true, BN / 2>(KTile{&params.k}, stage, storage.mbar, kHead,
                                                  elect, k_pages, first);
      });
    }
    if constexpr (folds_k) {
      if (k_pages == 1) {
        section(storage, params, kKFolded, phase, k_rows, BN, [&](int32_t elect) {
          indices.template tma_copy_k<false>(KFoldedTile{&params.k_folded}, stage, storage.mbar,
                                             kHead, elect, 1, first);
        });
      }
    }
    section(storage, params, kV, phase, v_rows, BN, [&](int32_t elect) {
      indices.template tma_copy_v<true>(VTile{&params.v}, stage, storage.mbar, kHead, elect,
                                        v_pages, first);
    });
    section(storage, params, kVZero, phase, BN, BN, [&](int32_t elect) {
      indices.template tma_copy_v<true, 1, 0, MissingPages::kZero>(
          VTile{&params.v}, stage, storage.mbar, kHead, elect, v_pages, first);
    });
    if constexpr (folds_v) {
      if (v_pages == 1) {
        section(storage, params, kVFolded, phase, v_rows, BN, [&](int32_t elect) {
          indices.template tma_copy_v<false>(VFoldedTile{&params.v_folded}, stage, storage.mbar,
                                             kHead, elect, 1, first);
        });
      }
    }
    const uint32_t part0 =
        Indices::template v_num_valid_pages<2>(params.base_row, params.num_keys, 0);
    section(storage, params, kVPart0, phase, part0 * VPartTile::box_rows, BN / 2,
            [&](int32_t elect) {
              indices.template tma_copy_v<true, 2, 0>(VPartTile{&params.v_part}, stage,
                                                      storage.mbar, kHead, elect, part0, first);
            });
    const uint32_t part1 =
        Indices::template v_num_valid_pages<2>(params.base_row, params.num_keys, 1);
    section(storage, params, kVPart1, phase, part1 * VPartTile::box_rows, BN / 2,
            [&](int32_t elect) {
              indices.template tma_copy_v<true, 2, 1>(VPartTile{&params.v_part}, stage,
                                                      storage.mbar, kHead, elect, part1, first);
            });
  }
};

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
  [[nodiscard]] uint16_t& at(int key, int column) {
    return data[static_cast<size_t>((row_of(key) * kHeads + kHead) * columns + column)];
  }
};

template <class Indices, Swizzle swizzle>
int check_instance(int page_size) {
  using Kernel = CopyTile<Indices, swizzle>;
  constexpr int BN = Indices::BN, BK = Kernel::BK, gran = Kernel::gran;
  constexpr bool is_peer = Indices::pair_cta && !Indices::is_leader;
  // The second tile of the sequence, or one in the middle of a page.
  const int base_row = BN;
  Cache cache(page_size, gran, 2 * BN + 8);
  for (int key = 0; key < cache.max_keys; ++key) {
    for (int c = 0; c < cache.columns; ++c)
      cache.at(key, c) = static_cast<uint16_t>((key * 131 + c * 7) & 0x3fff);
  }
  const auto bytes = [](int elements) { return static_cast<uint64_t>(elements) * 2; };
  const KVRows rows{.address = reinterpret_cast<uint64_t>(cache.data.data()),
                    .num_rows = cache.data.size() / static_cast<size_t>(kHeads * cache.columns),
                    .num_heads = kHeads,
                    .depth = static_cast<uint64_t>(cache.columns),
                    .row_stride_bytes = bytes(kHeads * cache.columns),
                    .head_stride_bytes = bytes(cache.columns)};
  std::vector<int32_t> table(cache.table);
  table.insert(table.begin(), cache.table.size(), 0);  // batch 0: a page of NaN
  int cases = 0;
  // Every number of valid pages: full ones, and a last one with three keys less.
  for (int valid_rows = 0; valid_rows <= BN; valid_rows += Indices::eff_page) {
    for (const int cut : {0, 3}) {
      if (valid_rows < cut) continue;
      const int num_keys = base_row + valid_rows - cut;
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
          {.mode = emulator::Mode::kRandom, .seed = static_cast<uint64_t>(++cases)});
      EXPECT_TRUE(result.is_clean()) << to_string(result.reports[0]);
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
        EXPECT_EQ(wrong, 0) << name << ", section " << section;
        ++cases;
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
  return cases;
}

template <int BN, int page_size>
int check_page_size() {
  if constexpr (page_size != 0 && page_size % BN != 0 && BN % page_size != 0) {
    return 0;
  } else {
    const auto check_roles = []<Swizzle swizzle>() {
      return check_instance<PagedRowIndices<BN, page_size, false, true>, swizzle>(page_size) +
             check_instance<PagedRowIndices<BN, page_size, false, false>, swizzle>(page_size) +
             check_instance<PagedRowIndices<BN, page_size, true, true>, swizzle>(page_size) +
             check_instance<PagedRowIndices<BN, page_size, true, false>, swizzle>(page_size);
    };
    return check_roles.template operator()<Swizzle::kNone>() +
           check_roles.template operator()<Swizzle::k32B>() +
           check_roles.template operator()<Swizzle::k64B>() +
           check_roles.template operator()<Swizzle::k128B>();
  }
}

}  // namespace pagoda::sweep
