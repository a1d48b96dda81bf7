// PagedRowIndices: the physical rows of the pages of one tile of BN keys, looked up once and used
// for the TMA copies of K and of V.
//
// Pages smaller than the tile give BN / page_size entries. Otherwise (page_size >= BN, or 0: not
// paged) there is one entry, and the tile's rows are consecutive. With a pair of CTAs each CTA
// loads half of K's rows, the leader the first half, and half of V's columns: the entries always
// cover all BN rows.
#pragma once

#include <cstdint>

#include "arch/debug.hpp"
#include "arch/layout/types.hpp"
#include "arch/mbarrier.hpp"
#include "arch/memory.hpp"
#include "core/target.hpp"
#include "operand/kv_tma_tile.hpp"

namespace pagoda::operand {

// Rows of a tile per page.
PAGODA_HOST_DEVICE constexpr int kv_sub_tile_rows(int tile_rows, int page_size) {
  return page_size <= 0 || page_size >= tile_rows ? tile_rows : page_size;
}

// Whether page size and BN divide one another: no smaller page straddles two tiles. 0 = not paged.
PAGODA_HOST_DEVICE constexpr bool divide_one_another(int page_size, int BN) {
  if (page_size <= 0) return page_size == 0;
  return page_size % BN == 0 || BN % page_size == 0;
}

// A row outside of every tensor: TMA fills the box with zeros.
inline constexpr uint32_t kOutOfBoundsRow = 1U << 30;

// What a partial copy does for the pages of a tile past the sequence's last page.
enum class MissingPages : uint8_t {
  // Issues no copy: their rows of shared memory keep what they held, and the barrier expects the
  // bytes of the valid pages. For the operands of asynchronous products: the mask replaces the
  // scores of such rows of K, and the load role zeroes such rows of V.
  kSkip,
  // Fills them with zeros: the barrier expects the bytes of the whole tile. For consumers that read
  // the tile by ordinary loads, which must not read unwritten memory; and for K of a pair of CTAs
  // whose leader alone arrives on the full barrier.
  kZero,
};

template <int BN_, int page_size_, bool pair_cta_ = false, bool is_leader_ = true>
struct PagedRowIndices {
  static constexpr int BN = BN_;
  static constexpr int page_size = page_size_;
  static constexpr bool pair_cta = pair_cta_;
  static constexpr bool is_leader = is_leader_;
  static constexpr int cta_group = pair_cta ? 2 : 1;
  static constexpr int eff_page = kv_sub_tile_rows(BN, page_size);
  static constexpr int num_pages = BN / eff_page;
  static_assert(divide_one_another(page_size, BN), "page_size and BN must divide one another");
  static_assert(eff_page % 8 == 0,
                "a page of a tile has a multiple of 8 rows: one swizzle pattern");

  static_assert(!pair_cta || num_pages == 1 || num_pages % 2 == 0,
                "each CTA of a pair loads whole pages");

  uint32_t rows[num_pages];

  // Physical row of row `offset` of the tile, for offsets known at compile time.
  [[nodiscard]] PAGODA_HOST_DEVICE uint32_t get_row(uint32_t offset) const {
    if constexpr (num_pages == 1) return rows[0] + offset;
    return rows[offset / eff_page] + offset % eff_page;
  }

  // Whether every copy of the tile at key `kv_row` is issued. A tile in one page always is: the
  // rows past the sequence's end are read with the others.
  [[nodiscard]] static PAGODA_HOST_DEVICE bool is_whole(uint32_t kv_row, uint32_t num_keys) {
    return num_pages == 1 || kv_row + BN <= num_keys;
  }

  // --- K: this CTA's rows ---
  static constexpr int k_tile_rows = BN / cta_group;
  static constexpr int k_issue_rows =
      kv_sub_tile_rows(k_tile_rows, page_size);               // the box of K's map
  static constexpr int k_pages = k_tile_rows / k_issue_rows;  // copies per tile
  static constexpr int k_first_row = pair_cta && !is_leader ? k_tile_rows : 0;

  // --- V: num_v_sub_tiles parts of its rows, each in its own shared-memory buffer ---
  template <int num_v_sub_tiles>
  static constexpr int v_tile_rows = BN / num_v_sub_tiles;
  template <int num_v_sub_tiles>
  static constexpr int v_issue_rows = kv_sub_tile_rows(v_tile_rows<num_v_sub_tiles>, page_size);
  template <int num_v_sub_tiles>
  static constexpr int v_pages = v_tile_rows<num_v_sub_tiles> / v_issue_rows<num_v_sub_tiles>;

  // Copies with at least one valid key, for the tile at key `kv_row` of a sequence of `num_keys`
  // keys.
  [[nodiscard]] static PAGODA_HOST_DEVICE uint32_t k_num_valid_pages(uint32_t kv_row,
                                                                     uint32_t num_keys) {
    return valid_pages(kv_row + k_first_row, num_keys, k_issue_rows, k_pages);
  }
  template <int num_v_sub_tiles = 1>
  [[nodiscard]] static PAGODA_HOST_DEVICE uint32_t v_num_valid_pages(uint32_t kv_row,
                                                                     uint32_t num_keys,
                                                                     int v_sub_tile_idx = 0) {
    return valid_pages(
        kv_row + static_cast<uint32_t>(v_sub_tile_idx * v_tile_rows<num_v_sub_tiles>), num_keys,
        v_issue_rows<num_v_sub_tiles>, v_pages<num_v_sub_tiles>);
  }

  // Copies K: this CTA's rows of the tile, packed from the start of `stage_base`, in panels of
  // smem_BN rows. needs_partial: only the first k_num_valid_pages in 0 .. k_pages are valid.
  template <bool needs_partial, int smem_BN = BN, MissingPages missing = MissingPages::kSkip,
            class Tile>
  PAGODA_DEVICE void tma_copy_k(const Tile& tma_op, arch::SharedPtr<typename Tile::T> stage_base,
                                arch::MBarrier& mbar, uint32_t kv_head_idx, int32_t elect,
                                arch::Eviction eviction, uint32_t k_num_valid_pages = k_pages,
                                uint32_t depth_offset = 0,
                                arch::Where where = arch::Where::current()) const {
    static_assert(Tile::box_rows == k_issue_rows, "K's tensor map has boxes of k_issue_rows rows");
    const Issue issue{kv_head_idx, depth_offset, elect, eviction, where};
    copy_pages<needs_partial, k_pages, k_first_row, smem_BN, missing>(tma_op, stage_base, mbar,
                                                                      k_num_valid_pages, issue);
  }

  // Copies V, or one of num_v_sub_tiles parts of its rows, in panels of that many rows.
  template <bool needs_partial, int num_v_sub_tiles = 1, int v_sub_tile_idx = 0,
            MissingPages missing = MissingPages::kSkip, class Tile>
  PAGODA_DEVICE void tma_copy_v(const Tile& tma_op, arch::SharedPtr<typename Tile::T> stage_base,
                                arch::MBarrier& mbar, uint32_t kv_head_idx, int32_t elect,
                                arch::Eviction eviction,
                                uint32_t num_valid_pages = v_pages<num_v_sub_tiles>,
                                uint32_t depth_offset = 0,
                                arch::Where where = arch::Where::current()) const {
    static_assert(BN % num_v_sub_tiles == 0 && v_sub_tile_idx < num_v_sub_tiles,
                  "no such part of V");
    static_assert(Tile::box_rows == v_issue_rows<num_v_sub_tiles>,
                  "V's tensor map has boxes of v_issue_rows rows");
    constexpr int rows_of_part = v_tile_rows<num_v_sub_tiles>;
    const Issue issue{kv_head_idx, depth_offset, elect, eviction, where};
    copy_pages<needs_partial, v_pages<num_v_sub_tiles>, v_sub_tile_idx * rows_of_part, rows_of_part,
               missing>(tma_op, stage_base, mbar, num_valid_pages, issue);
  }

 private:
  struct Issue {
    uint32_t kv_head;
    uint32_t depth_offset;
    int32_t elect;
    arch::Eviction eviction;
    arch::Where where;
  };

  static PAGODA_HOST_DEVICE uint32_t valid_pages(uint32_t first_key, uint32_t num_keys,
                                                 int rows_a_page, int pages) {
    if (first_key >= num_keys) return 0;
    const uint32_t count = (num_keys - first_key + static_cast<uint32_t>(rows_a_page) - 1) /
                           static_cast<uint32_t>(rows_a_page);
    return count < static_cast<uint32_t>(pages) ? count : static_cast<uint32_t>(pages);
  }

  // Issues the copies of `pages` pages from row `first_row` of the tile on, unrolled. The pages
  // from `valid` on are missing.
  template <bool needs_partial, int pages, int first_row, int smem_rows, MissingPages missing,
            class Tile>
  PAGODA_DEVICE void copy_pages(const Tile& tma_op, arch::SharedPtr<typename Tile::T> stage_base,
                                arch::MBarrier& mbar, uint32_t valid, const Issue& issue) const {
    arch::expect(!needs_partial || valid <= pages,
                 "the number of valid pages is at most that of the tile", issue.where);
    PAGODA_UNROLL
    for (int page = 0; page < pages; ++page) {
      const bool is_missing = needs_partial && static_cast<uint32_t>(page) >= valid;
      // A branch that all lanes take. As a part of the instruction's predicate, with `elect`, the
      // condition makes nvcc emit a loop over the lanes for every copy.
      if (missing == MissingPages::kSkip && is_missing) break;
      const uint32_t row =
          is_missing ? kOutOfBoundsRow : get_row(first_row + page * Tile::box_rows);
      tma_op.template copy<smem_rows>(stage_base + page * Tile::box_rows * Tile::gran, mbar, row,
                                      issue.kv_head, issue.depth_offset, issue.elect,
                                      issue.eviction, issue.where);
    }
  }
};

// Rows per copy of a tile of BN keys from a cache with pages of `page_size` rows. 0: the tile lies
// in one page (not paged, or pages of whole tiles). Else the largest power of two from 8 to 128
// that divides page and tile: the page itself or a part of it. -1: TMA cannot load such pages, and
// the kernel gathers the rows itself.
PAGODA_HOST_DEVICE constexpr int kv_copy_rows(int page_size, int BN) {
  if (page_size % BN == 0) return 0;
  for (int rows = 128; rows >= 8; rows /= 2) {
    if (rows < BN && BN % rows == 0 && page_size % rows == 0) return rows;
  }
  return -1;
}

// Calls f.operator()<kv_copy_rows(page_size, BN)>(); returns false if that is -1, or less than
// `fewest`, but not 0.
template <int BN, int fewest = 8, class F>
PAGODA_HOST_DEVICE bool dispatch_page_size(int page_size, F&& f) {
  const int copy_rows = kv_copy_rows(page_size, BN);
  if (copy_rows == 0) return f.template operator()<0>(), true;
  const auto try_rows = [&]<int rows>() {
    if constexpr (rows >= fewest && rows < BN && BN % rows == 0) {
      if (copy_rows == rows) return f.template operator()<rows>(), true;
    }
    return false;
  };
  return try_rows.template operator()<8>() || try_rows.template operator()<16>() ||
         try_rows.template operator()<32>() || try_rows.template operator()<64>() ||
         try_rows.template operator()<128>();
}

}  // namespace pagoda::operand
