// CopyTileCase: inputs of the kernel CopyTile and the output that a plain gather gives. The tile
// starts at key BN of the second of two sequences; its pages are shuffled; every page, head, column
// and key that no copy may read holds NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "testing/material/copy_tile.hpp"

namespace pagoda::material {

template <class Kernel>
class CopyTileCase {
 public:
  using Indices = typename Kernel::Indices;
  static constexpr int BN = Indices::BN, BK = Kernel::BK, gran = Kernel::gran;
  static constexpr int kColumns = 3 * gran;
  static constexpr int kMaxKeys = 2 * BN + 8;
  static constexpr uint16_t kNan = 0x7fff;  // bf16

  // page_size 0: dense.
  explicit CopyTileCase(int page_size)
      : page_size_(page_size),
        num_pages_(page_size == 0 ? 0 : (kMaxKeys + page_size - 1) / page_size),
        num_rows_(page_size == 0 ? 2 * kMaxKeys : 2 * num_pages_ * page_size),
        cache_(static_cast<size_t>(num_rows_ * copy_tile::kHeads * kColumns), kNan),
        table_(static_cast<size_t>(num_pages_), 0) {
    // The first sequence has page 0, which holds NaN; the second has the odd pages in reverse
    // order.
    for (int i = 0; i < num_pages_; ++i) table_.push_back(2 * (num_pages_ - 1 - i) + 1);
    set_num_keys(2 * BN);
  }

  // Keys of the sequence. Fills the cache: numbers in the copied columns of all copies that contain
  // a valid key, NaN everywhere else.
  void set_num_keys(int num_keys) {
    num_keys_ = num_keys;
    lengths_ = {1, num_keys};
    cache_.assign(cache_.size(), kNan);
    for (int row = 0; row < BN; ++row) {
      if (!is_copied(0, row, Indices::eff_page)) continue;
      for (int c = 0; c < BK; ++c) {
        const int key = BN + row, column = copy_tile::kFirstChunk * gran + c;
        at(key, column) = static_cast<uint16_t>((key * 131 + column * 7) & 0x3fff);
      }
    }
  }

  [[nodiscard]] const std::vector<uint16_t>& cache() const { return cache_; }
  [[nodiscard]] const std::vector<int32_t>& table() const { return table_; }
  [[nodiscard]] const std::vector<int32_t>& lengths() const { return lengths_; }
  [[nodiscard]] int num_keys() const { return num_keys_; }

  // The output of the plain gather, [kSections, BN, BK]; `untouched` where the kernel stores
  // nothing.
  [[nodiscard]] std::vector<uint16_t> expected(uint16_t untouched) const {
    std::vector<uint16_t> out(static_cast<size_t>(copy_tile::kSections * BN * BK), untouched);
    const auto gather = [&](copy_tile::Section section, int first_row, int rows, int box_rows,
                            bool fills_zeros = false) {
      for (int r = 0; r < rows; ++r) {
        for (int c = 0; c < BK; ++c) {
          uint16_t& element = out[static_cast<size_t>((section * BN + r) * BK + c)];
          if (is_copied(first_row, r, box_rows)) {
            element = at(BN + first_row + r, copy_tile::kFirstChunk * gran + c);
          } else if (fills_zeros) {
            element = 0;
          }
        }
      }
    };
    const int k_first = Indices::pair_cta && !Indices::is_leader ? BN / 2 : 0;
    constexpr int kKRows = Indices::k_tile_rows, kKBox = Indices::k_issue_rows;
    constexpr int kVBox = Kernel::VTile::box_rows, kPartBox = Kernel::VPartTile::box_rows;
    gather(copy_tile::kK, k_first, kKRows, kKBox);
    if (Indices::pair_cta) gather(copy_tile::kKHalfPanels, k_first, kKRows, kKBox);
    gather(copy_tile::kV, 0, BN, kVBox);
    gather(copy_tile::kVZero, 0, BN, kVBox, true);
    gather(copy_tile::kVPart0, 0, BN / 2, kPartBox);
    gather(copy_tile::kVPart1, BN / 2, BN / 2, kPartBox);
    return out;
  }

  // Parameters of a launch whose buffers have these addresses. make_map(TensorMapSpec) makes the
  // target's tensor map.
  template <class MakeMap>
  [[nodiscard]] typename Kernel::Params params(const void* cache, const int32_t* table,
                                               const int32_t* lengths, uint16_t* out,
                                               MakeMap make_map) const {
    constexpr uint64_t kRowBytes = copy_tile::kHeads * kColumns * 2;
    const operand::KVRows rows{.address = reinterpret_cast<uint64_t>(cache),
                               .num_rows = static_cast<uint64_t>(num_rows_),
                               .num_heads = copy_tile::kHeads,
                               .depth = kColumns,
                               .row_stride_bytes = kRowBytes,
                               .head_stride_bytes = kColumns * 2};
    typename Kernel::Params params{.k = make_map(Kernel::KTile::tensor_map(rows)),
                                   .v = make_map(Kernel::VTile::tensor_map(rows)),
                                   .v_part = make_map(Kernel::VPartTile::tensor_map(rows)),
                                   .paged = {},
                                   .dense = {.rows_per_batch = static_cast<uint32_t>(kMaxKeys)},
                                   .batch = 1,
                                   .base_row = BN,
                                   .num_keys = static_cast<uint32_t>(num_keys_),
                                   .out = out};
    if (page_size_ != 0) {
      params.paged = operand::PagedRows{.pages = table,
                                        .table_stride = num_pages_,
                                        .lengths = lengths,
                                        .page_size = page_size_,
                                        .row_stride = static_cast<uint32_t>(page_size_)};
    }
    return params;
  }

 private:
  // Whether row `row` of copies of `box_rows` rows is copied: the first key of its copy is valid.
  [[nodiscard]] bool is_copied(int first_row, int row, int box_rows) const {
    return BN + first_row + row / box_rows * box_rows < num_keys_;
  }
  [[nodiscard]] size_t index(int key, int column) const {
    const int row = page_size_ == 0
                        ? kMaxKeys + key
                        : table_[static_cast<size_t>(num_pages_ + key / page_size_)] * page_size_ +
                              key % page_size_;
    return static_cast<size_t>((row * copy_tile::kHeads + copy_tile::kHead) * kColumns + column);
  }
  [[nodiscard]] uint16_t& at(int key, int column) { return cache_[index(key, column)]; }
  [[nodiscard]] uint16_t at(int key, int column) const { return cache_[index(key, column)]; }

  int page_size_, num_pages_, num_rows_;
  int num_keys_ = 0;
  std::vector<uint16_t> cache_;  // [row, head, column]
  std::vector<int32_t> table_;   // [2, num_pages]
  std::vector<int32_t> lengths_;
};

}  // namespace pagoda::material
