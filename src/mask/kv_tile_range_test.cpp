// KV tile ranges against an element-wise test, over many shapes.
#include "mask/kv_tile_range.hpp"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <utility>
#include <vector>

#include "mask/interval_mask.hpp"
#include "testing/material/run_on_machine.hpp"

namespace pagoda::mask {
namespace {

enum class TileStatus : uint8_t { kSkip, kPartial, kUnmasked };

TileStatus status(const KVTileRange& range, int32_t tile) {
  const bool is_unmasked = range.unmasked_begin <= tile && tile < range.unmasked_end;
  return is_unmasked ? TileStatus::kUnmasked : TileStatus::kPartial;
}

// Independent of the code under test: written from the comments of pagoda/mask.hpp.
struct Elements {
  IntervalRule rule;
  int32_t num_keys = 0;

  [[nodiscard]] bool sees(int32_t q, int32_t k) const {
    if (k < 0 || k >= num_keys) return false;
    if (rule.left != IntervalRule::kOpen && k < q - rule.left) return false;
    if (rule.right != IntervalRule::kOpen && k > q + rule.right) return false;
    return rule.chunk == 0 || (q >= 0 && q / rule.chunk == k / rule.chunk);
  }
  // The status of `rows` rows from position q on and `columns` keys from k on.
  [[nodiscard]] TileStatus status(int32_t q, int32_t rows, int32_t k, int32_t columns) const {
    int32_t seen = 0;
    for (int32_t i = 0; i < rows; ++i) {
      for (int32_t j = 0; j < columns; ++j) seen += sees(q + i, k + j) ? 1 : 0;
    }
    if (seen == 0) return TileStatus::kSkip;
    return seen == rows * columns ? TileStatus::kUnmasked : TileStatus::kPartial;
  }
};

TEST(KVTileRange, a_long_causal_window_is_partial_unmasked_partial) {
  const IntervalMask mask{.rule = {.left = 1023, .right = 0}};
  const RowTile tile{
      .sequence = 0, .seqlen_kv = 8192, .q_position = 4096, .first_row = 128, .num_rows = 128};
  const KVTileRange range = mask.kv_tiles(tile, tile_shape(128, 16));
  // Rows 4224..4351 see keys [3201, 4225) .. [3328, 4352).
  EXPECT_EQ(range.start_column, 3200);
  EXPECT_EQ(range.end_column, 4352);
  EXPECT_EQ(range.num_tiles, 9);
  EXPECT_EQ(range.unmasked_begin, 1);
  EXPECT_EQ(range.unmasked_end, 8);
}

struct Shape {
  IntervalRule rule;
  int32_t rows, keys, page_size;
};

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  const IntervalRule rules[] = {
      {},                         // none
      {.right = 0},               // causal
      {.left = 0, .right = 0},    // only itself
      {.left = 40, .right = 0},   // causal window
      {.left = 200, .right = 0},  // longer than several tiles
      {.left = 30},               // window without an upper bound
      {.left = 10, .right = 20},  // symmetric
      {.chunk = 32},              // chunked, a multiple of tiles
      {.chunk = 50},              // and not
      {.right = 0, .chunk = 50},  // chunked causal
      {.left = 20, .right = 5, .chunk = 64},
  };
  for (const IntervalRule& rule : rules) {
    for (const int32_t rows : {1, 16, 48}) {
      for (const int32_t keys : {32, 64}) {
        for (const int32_t page_size : {0, 8, 16, 32, 48, 128}) {
          all.push_back({rule, rows, keys, page_size});
        }
      }
    }
  }
  return all;
}

// The tiles of some of the rows, where their first tile is the one of all rows.
void check_tiles_of_rows(const KVTileRange& range, const IntervalMask& mask, const RowTile& tile,
                         const Elements& elements, int32_t keys) {
  constexpr int32_t kRows = 16;
  for (int32_t first = 0; first < tile.num_rows; first += kRows) {
    const int32_t rows = std::min(kRows, tile.num_rows - first);
    const int32_t row = tile.first_row + first;
    const KVTileRange own =
        range.of_rows(mask.visible(tile, row), mask.visible(tile, row + rows - 1), keys);
    ASSERT_EQ(own.start_column, range.start_column);
    ASSERT_LE(own.num_tiles, range.num_tiles);
    for (int32_t t = 0; t < range.num_tiles; ++t) {
      const TileStatus expected = elements.status(tile.position(row), rows, range.column(t), keys);
      if (t >= own.num_tiles) {
        ASSERT_EQ(expected, TileStatus::kSkip) << "tile " << t << " row " << row;
      } else {
        ASSERT_EQ(status(own, t) == TileStatus::kUnmasked, expected == TileStatus::kUnmasked)
            << "tile " << t << " row " << row;
      }
    }
    if (elements.sees(tile.position(row + rows - 1), mask.visible(tile, row + rows - 1).lo)) {
      const int32_t last = range.column(own.num_tiles - 1);
      ASSERT_NE(elements.status(tile.position(row), rows, last, keys), TileStatus::kSkip);
    }
  }
}

void check_tiles(const Shape& shape, int32_t seqlen_q, int32_t seqlen_kv, int32_t position,
                 const int32_t* valid) {
  const IntervalMask mask{.rule = shape.rule, .valid_lengths = valid};
  const int32_t num_keys = valid == nullptr ? seqlen_kv : std::min(seqlen_kv, *valid);
  const Elements elements{shape.rule, num_keys};
  const TileShape columns = tile_shape(shape.keys, shape.page_size);
  ASSERT_EQ(shape.keys % columns.alignment, 0);
  if (shape.page_size > 0) {
    ASSERT_EQ(shape.page_size % columns.alignment, 0);
  }
  for (int32_t first = 0; first < seqlen_q; first += shape.rows) {
    const int32_t rows = std::min(shape.rows, seqlen_q - first);
    const RowTile tile{0, seqlen_kv, position, first, rows};
    const int32_t q = position + first;
    const KVTileRange range = mask.kv_tiles(tile, columns);
    int32_t lowest = seqlen_kv;
    int32_t highest = -1;
    for (int32_t row = 0; row < rows; ++row) {
      const Interval view = mask.visible(tile, first + row);
      for (int32_t k = 0; k < seqlen_kv; ++k) {
        if (!elements.sees(q + row, k)) continue;
        lowest = std::min(lowest, k);
        highest = std::max(highest, k);
      }
      for (int32_t column = 0; column < seqlen_kv + 40; column += 19) {
        const uint32_t keep = view.keep32(column);
        for (int32_t i = 0; i < 32; ++i) {
          ASSERT_EQ((keep >> static_cast<uint32_t>(i) & 1U) != 0,
                    elements.sees(q + row, column + i));
        }
      }
    }
    if (highest < 0) {
      ASSERT_EQ(range.num_tiles, 0);
      continue;
    }
    // First and last tile are exact, and every tile between them is needed.
    ASSERT_EQ(range.start_column, lowest / columns.alignment * columns.alignment);
    ASSERT_EQ(range.end_column, highest + 1);
    ASSERT_EQ(range.num_tiles, (highest - range.start_column) / shape.keys + 1);
    ASSERT_LE(range.unmasked_begin, range.unmasked_end);
    ASSERT_LE(range.unmasked_end, range.num_tiles);
    for (int32_t t = 0; t < range.num_tiles; ++t) {
      const TileStatus expected = elements.status(q, rows, range.column(t), shape.keys);
      ASSERT_EQ(status(range, t), expected) << "tile " << t << " first row " << first;
      ASSERT_NE(expected, TileStatus::kSkip);
    }
    ASSERT_EQ(range.column(range.num_tiles - 1) + range.valid_keys(range.num_tiles - 1),
              highest + 1);
    ASSERT_NO_FATAL_FAILURE(check_tiles_of_rows(range, mask, tile, elements, shape.keys));
  }
}

TEST(KVTileRange, is_exact_over_many_shapes) {
  std::mt19937 rng(5);
  for (const Shape& shape : shapes()) {
    for (int i = 0; i < 4; ++i) {
      const auto seqlen_q = static_cast<int32_t>(1 + rng() % 70);
      const auto seqlen_kv = static_cast<int32_t>(rng() % 300);
      // Bottom-right aligned (below zero where keys are fewer), then anywhere.
      const int32_t position =
          i % 2 == 0 ? seqlen_kv - seqlen_q : static_cast<int32_t>(rng() % 300) - 20;
      const auto valid = static_cast<int32_t>(rng() % 320);
      const emulator::Result result = emulator::run_on_machine(
          {emulator::input("valid_lengths", &valid, 1)},
          [&] { check_tiles(shape, seqlen_q, seqlen_kv, position, i < 2 ? nullptr : &valid); });
      EXPECT_TRUE(result.is_clean());
      if (HasFatalFailure()) {
        FAIL() << "left " << shape.rule.left << " right " << shape.rule.right << " chunk "
               << shape.rule.chunk << " rows " << shape.rows << " keys " << shape.keys << " page "
               << shape.page_size << " seqlens " << seqlen_q << " " << seqlen_kv << " position "
               << position << " valid " << valid;
      }
    }
  }
}

TEST(KVTileRange, parts_keep_every_tile_and_its_status) {
  const IntervalMask mask{.rule = {.left = 1000, .right = 0}};
  const RowTile tile{
      .sequence = 0, .seqlen_kv = 3000, .q_position = 2000, .first_row = 10, .num_rows = 64};
  const KVTileRange range = mask.kv_tiles(tile, tile_shape(64, 16));
  for (int32_t tiles = 1; tiles < 20; ++tiles) {
    int32_t next = 0;
    for (int32_t begin = range.start_column; begin < range.end_column; begin += tiles * 64) {
      const KVTileRange part = range.part(begin, std::min(range.end_column, begin + tiles * 64));
      ASSERT_GT(part.num_tiles, 0);
      for (int32_t t = 0; t < part.num_tiles; ++t, ++next) {
        ASSERT_EQ(part.column(t), range.column(next));
        ASSERT_EQ(part.valid_keys(t), range.valid_keys(next));
        ASSERT_EQ(status(part, t), status(range, next)) << "tiles " << tiles << " tile " << next;
      }
    }
    ASSERT_EQ(next, range.num_tiles);
  }
  EXPECT_EQ(range.part(range.end_column, range.end_column).num_tiles, 0);
}

// Two ranges with keys between them that no row sees, as a functor may have.
TEST(KVTileRange, a_gap_is_in_no_tile_and_every_visible_key_in_one) {
  std::mt19937 random(7);
  const auto below = [&random](int32_t n) { return static_cast<int32_t>(random() % n); };
  int32_t num_gaps = 0;
  for (int32_t round = 0; round < 20000; ++round) {
    const TileShape shape = round % 2 == 0 ? TileShape{64, 16} : TileShape{96, 1};
    const Interval prefix{below(200), below(400)};
    const int32_t begin = prefix.lo + below(900);
    const Interval keys{begin, begin + below(500) - 50};
    const int32_t first = begin + below(100);
    const Interval unmasked{first, first + below(600) - 100};
    const auto is_visible = [&](int32_t key) { return prefix.contains(key) || keys.contains(key); };
    const KVTileRange whole = make_kv_tile_range(prefix, keys, unmasked & keys, shape);
    num_gaps += whole.gap_keys > 0 ? 1 : 0;
    // Each half of the tiles, as a split has it, and all of them.
    const int32_t middle = whole.num_tiles / 2;
    std::vector<int32_t> seen(2000);
    int32_t last_key = -1;
    for (const auto& [from, to] : {std::pair(0, middle), std::pair(middle, whole.num_tiles)}) {
      if (from == to) continue;
      const int32_t end = to == whole.num_tiles ? whole.end_column : whole.column(to);
      const KVTileRange part = whole.part(whole.column(from), end);
      ASSERT_EQ(part.num_tiles, to - from);
      for (int32_t tile = 0; tile < part.num_tiles; ++tile) {
        const int32_t key = part.first_key(tile);
        ASSERT_EQ(key, whole.first_key(from + tile));
        ASSERT_GT(key, last_key) << "tiles overlap";
        ASSERT_EQ(key % shape.alignment, 0);
        last_key = key + shape.keys - 1;
        const bool is_unmasked = part.unmasked_begin <= tile && tile < part.unmasked_end;
        for (int32_t i = 0; i < shape.keys; ++i) {
          ++seen[static_cast<size_t>(key + i)];
          ASSERT_TRUE(!is_unmasked || (unmasked & keys).contains(key + i));
        }
      }
    }
    int32_t num_visible_tiles = 0;
    for (int32_t key = 0; key < 1500; ++key) {
      ASSERT_EQ(seen[static_cast<size_t>(key)] == 0 && is_visible(key), false) << key;
    }
    for (const Interval range : {prefix, keys}) {
      if (!range.empty()) num_visible_tiles += (range.hi - range.lo - 1) / shape.keys + 2;
    }
    ASSERT_LE(whole.num_tiles, num_visible_tiles);
  }
  EXPECT_GT(num_gaps, 1000);
}

}  // namespace
}  // namespace pagoda::mask
