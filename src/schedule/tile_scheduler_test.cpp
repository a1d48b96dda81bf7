// Every scheduler assigns every tile exactly once, over random batches.
#include "schedule/tile_scheduler.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <numeric>
#include <random>
#include <tuple>
#include <vector>

#include "testing/material/run_on_machine.hpp"

namespace pagoda::schedule {
namespace {

struct Batch {
  std::vector<int32_t> cu_rows;  // empty = padded
  TileGrid grid;
};

Batch random_lengths(std::mt19937& rng) {
  const auto below = [&](uint32_t n) { return static_cast<int32_t>(rng() % n); };
  Batch batch;
  TileGrid& grid = batch.grid;
  grid.batch = 1 + below(40);
  grid.num_heads = 1 + below(5);
  grid.tile_rows = 1 + below(130);
  grid.num_splits = below(3) == 0 ? 1 + below(4) : 1;
  grid.order = below(2) == 0 ? TileOrder::kRowsFastest : TileOrder::kLongestFirst;
  grid.section = 1 + below(9);
  if (below(3) == 0) {
    grid.rows = below(500);
    return batch;
  }
  batch.cu_rows.push_back(0);
  for (int32_t b = 0; b < grid.batch; ++b) {
    const int32_t kind = below(4);  // many empty and many single rows
    batch.cu_rows.push_back(batch.cu_rows.back() + (kind == 0 ? 0 : kind == 1 ? 1 : below(400)));
  }
  grid.rows = batch.cu_rows.back();
  grid.cu_rows = batch.cu_rows.data();
  if (below(2) == 0) {
    for (int32_t b = 0; b < grid.batch; ++b) {
      const auto i = static_cast<size_t>(b);
      grid.most_rows = std::max(grid.most_rows, batch.cu_rows[i + 1] - batch.cu_rows[i]);
    }
    grid.most_rows += below(3);
  }
  return batch;
}

Batch random_batch(std::mt19937& rng) {
  Batch batch = random_lengths(rng);
  TileGrid& grid = batch.grid;
  if (rng() % 2 == 0) {
    grid.num_whole = static_cast<int32_t>(rng() % static_cast<uint32_t>(grid.num_tiles() + 1));
  }
  return batch;
}

// The grid reads cu_rows as a kernel does: `body` runs in an emulated launch that may read them.
void with_rows(const std::vector<int32_t>& cu_rows, const std::function<void()>& body) {
  const emulator::Result result =
      emulator::run_on_machine({emulator::input("cu_rows", cu_rows.data(), cu_rows.size())}, body);
  ASSERT_TRUE(result.is_clean()) << to_string(result.reports.front());
}

int32_t rows_of(const Batch& batch, int32_t sequence) {
  if (batch.cu_rows.empty()) return batch.grid.rows;
  const auto b = static_cast<size_t>(sequence);
  return batch.cu_rows[b + 1] - batch.cu_rows[b];
}

using Tile = std::tuple<int32_t, int32_t, int32_t>;  // sequence, head, tile

// Splits of every row tile, by its place in the order of the grid without splits.
std::map<Tile, int32_t> splits_of_tiles(const Batch& batch) {
  TileGrid unsplit = batch.grid;
  unsplit.num_splits = 1;
  unsplit.num_whole = 0;
  const TileDecoder decoder = unsplit;
  std::map<Tile, int32_t> splits;
  with_rows(batch.cu_rows, [&] {
    for (int32_t i = 0; i < unsplit.size(); ++i) {
      const TileCoord tile = decoder.at(i);
      if (!tile.exists()) continue;
      splits[{tile.sequence, tile.head, tile.tile}] =
          i < batch.grid.num_whole ? 1 : batch.grid.num_splits;
    }
  });
  return splits;
}

class Seen {
 public:
  void add(const Batch& batch, const TileCoord& tile) {
    ASSERT_TRUE(tile.exists());
    ASSERT_EQ(tile.first_row, tile.tile * batch.grid.tile_rows);
    ASSERT_EQ(tile.num_rows,
              std::min(batch.grid.tile_rows, rows_of(batch, tile.sequence) - tile.first_row));
    num_splits_[{tile.sequence, tile.head, tile.tile}] = tile.num_splits;
    ++count_[{tile.sequence, tile.head, tile.tile, tile.split}];
  }
  void expect_all_once(const Batch& batch) const {
    size_t tiles = 0;
    std::map<Tile, int32_t> splits_of = splits_of_tiles(batch);
    ASSERT_EQ(num_splits_, splits_of);
    for (int32_t b = 0; b < batch.grid.batch; ++b) {
      const int32_t rows = rows_of(batch, b);
      const int32_t needed = (rows + batch.grid.tile_rows - 1) / batch.grid.tile_rows;
      for (int32_t h = 0; h < batch.grid.num_heads; ++h) {
        for (int32_t t = 0; t < needed; ++t) {
          for (int32_t s = 0; s < splits_of[{b, h, t}]; ++s, ++tiles) {
            const auto found = count_.find({b, h, t, s});
            ASSERT_NE(found, count_.end()) << b << " " << h << " " << t << " " << s;
            ASSERT_EQ(found->second, 1);
          }
        }
      }
    }
    ASSERT_EQ(count_.size(), tiles);  // and no others
  }

 private:
  std::map<std::tuple<int32_t, int32_t, int32_t, int32_t>, int> count_;
  std::map<Tile, int32_t> num_splits_;
};

// The parts of all CTAs are the KV tiles of each row tile, once.
TEST(ShareScheduler, gives_every_part_of_every_tile_once) {
  std::mt19937 rng(5);
  for (int i = 0; i < 300; ++i) {
    Batch batch = random_lengths(rng);
    const int32_t num_ctas = 1 + static_cast<int32_t>(rng() % 40);
    batch.grid.divide_among(num_ctas);
    const auto kv_tiles = [](const TileCoord& tile) {
      return 1 + (7 * tile.sequence + 3 * tile.head + tile.tile) % 50;
    };
    std::map<Tile, int32_t> seen;
    with_rows(batch.cu_rows, [&] {
      for (int32_t cta = 0; cta < num_ctas; ++cta) {
        ShareScheduler scheduler(batch.grid, cta);
        for (TileCoord tile; scheduler.next(tile);) {
          ASSERT_EQ(tile.num_splits, 1);
          const TileCoord same = TileDecoder(batch.grid).at(scheduler.index());
          ASSERT_EQ(std::tuple(same.sequence, same.head, same.tile),
                    std::tuple(tile.sequence, tile.head, tile.tile));
          const SharePart part = scheduler.part(kv_tiles(tile));
          if (part.begin == part.end) continue;
          int32_t& next = seen[{tile.sequence, tile.head, tile.tile}];
          ASSERT_EQ(part.begin, next);
          next = part.end;
        }
      }
    });
    batch.grid.num_splits = 1;
    for (const auto& [tile, splits] : splits_of_tiles(batch)) {
      const auto& [sequence, head, row_tile] = tile;
      TileCoord coord;
      coord.sequence = sequence;
      coord.head = head;
      coord.tile = row_tile;
      ASSERT_EQ(seen[tile], kv_tiles(coord)) << sequence << " " << head << " " << row_tile;
    }
    if (HasFatalFailure()) FAIL() << "case " << i;
  }
}

TEST(TransientScheduler, gives_every_tile_once) {
  std::mt19937 rng(1);
  for (int i = 0; i < 300; ++i) {
    const Batch batch = random_batch(rng);
    Seen seen;
    with_rows(batch.cu_rows, [&] {
      for (int32_t cta = 0; cta < batch.grid.size() + 3; ++cta) {
        TransientScheduler scheduler(batch.grid, cta);
        for (TileCoord tile; scheduler.next(tile);) seen.add(batch, tile);
      }
    });
    seen.expect_all_once(batch);
    if (HasFatalFailure()) FAIL() << "case " << i;
  }
}

TEST(PersistentScheduler, gives_every_tile_once_for_any_number_of_ctas) {
  std::mt19937 rng(2);
  for (int i = 0; i < 300; ++i) {
    const Batch batch = random_batch(rng);
    const auto ctas = static_cast<int32_t>(1 + rng() % 200);
    Seen seen;
    with_rows(batch.cu_rows, [&] {
      for (int32_t cta = 0; cta < ctas; ++cta) {
        PersistentScheduler scheduler(batch.grid, cta, ctas);
        for (TileCoord tile; scheduler.next(tile);) {
          seen.add(batch, tile);
          ASSERT_EQ(scheduler.index() % ctas, cta);
        }
        TileCoord tile;
        ASSERT_FALSE(scheduler.next(tile));
      }
    });
    seen.expect_all_once(batch);
    if (HasFatalFailure()) FAIL() << "case " << i;
  }
}

struct SharedCounter {
  int32_t* value;
  int32_t operator()() const { return (*value)++; }
};

TEST(QueuedScheduler, gives_every_tile_once_in_any_interleaving) {
  std::mt19937 rng(3);
  for (int i = 0; i < 300; ++i) {
    const Batch batch = random_batch(rng);
    const auto ctas = static_cast<int32_t>(1 + rng() % 60);
    int32_t counter = 0;
    using Queued = QueuedScheduler<SharedCounter>;
    static_assert(TileScheduler<Queued> && TileScheduler<TransientScheduler> &&
                  TileScheduler<PersistentScheduler>);
    std::vector<Queued> running;
    running.reserve(static_cast<size_t>(ctas));
    for (int32_t cta = 0; cta < ctas; ++cta) {
      running.emplace_back(batch.grid, cta, ctas, SharedCounter{&counter});
    }
    Seen seen;
    with_rows(batch.cu_rows, [&] {
      while (!running.empty()) {
        const size_t who = rng() % running.size();
        TileCoord tile;
        if (running[who].next(tile)) {
          seen.add(batch, tile);
          // The index alone identifies the tile: roles get it through shared memory.
          const TileCoord decoded = TileDecoder(batch.grid).at(running[who].index());
          ASSERT_EQ(decoded.first_row, tile.first_row);
          ASSERT_EQ(decoded.sequence, tile.sequence);
          ASSERT_EQ(decoded.head, tile.head);
          ASSERT_EQ(decoded.split, tile.split);
          continue;
        }
        ASSERT_FALSE(running[who].next(tile));  // once done, done
        running.erase(running.begin() + static_cast<std::ptrdiff_t>(who));
      }
    });
    seen.expect_all_once(batch);
    if (HasFatalFailure()) FAIL() << "case " << i;
  }
}

// Where all CTAs, some or none start with a number: the others draw from the beginning.
TEST(NumberQueue, gives_every_number_once_in_any_interleaving) {
  std::mt19937 rng(6);
  const auto below = [&](int32_t n) {
    return static_cast<int32_t>(rng() % static_cast<uint32_t>(n));
  };
  for (int i = 0; i < 300; ++i) {
    const int32_t ctas = 1 + below(60), end = below(200);
    const int32_t starters = below(std::min(ctas, end) + 1);
    int32_t counter = 0;
    std::vector<NumberQueue<SharedCounter>> running;
    running.reserve(static_cast<size_t>(ctas));
    for (int32_t cta = 0; cta < ctas; ++cta) {
      running.emplace_back(cta - (ctas - starters), starters, end, SharedCounter{&counter});
    }
    std::vector<int32_t> seen;
    while (!running.empty()) {
      const size_t who = rng() % running.size();
      if (running[who].next()) {
        seen.push_back(running[who].number());
        continue;
      }
      ASSERT_FALSE(running[who].next());  // once done, done
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(who));
    }
    std::ranges::sort(seen);
    std::vector<int32_t> all(static_cast<size_t>(end));
    std::iota(all.begin(), all.end(), 0);
    ASSERT_EQ(seen, all);
    // GridCounter relies on it: one number past the end for each CTA that draws.
    ASSERT_EQ(counter, end - starters + ctas);
  }
}

TEST(TileGrid, entries_of_sequences_are_theirs_alone) {
  std::mt19937 rng(7);
  for (int i = 0; i < 300; ++i) {
    const Batch batch = random_batch(rng);
    if (!batch.grid.is_bisected() || batch.grid.num_splits > 1) continue;
    const TileDecoder decoder = batch.grid;
    const auto first = static_cast<int32_t>(rng() % static_cast<uint32_t>(batch.grid.batch));
    const int32_t past =
        first + 1 + static_cast<int32_t>(rng() % static_cast<uint32_t>(batch.grid.batch - first));
    with_rows(batch.cu_rows, [&] {
      const EntryRange entries = decoder.entries_of(first, past);
      for (int32_t at = 0; at < decoder.size(); ++at) {
        const TileCoord tile = decoder.at(at);
        if (!tile.exists()) continue;
        const bool is_theirs = first <= tile.sequence && tile.sequence < past;
        ASSERT_EQ(is_theirs, entries.begin <= at && at < entries.end) << at;
      }
    });
    if (HasFatalFailure()) FAIL() << "case " << i;
  }
}

TEST(TileGrid, ragged_size_is_bounded_by_the_shapes_alone) {
  std::mt19937 rng(4);
  for (int i = 0; i < 200; ++i) {
    Batch batch = random_batch(rng);
    if (batch.cu_rows.empty() || batch.grid.most_rows > 0) continue;
    const TileGrid& grid = batch.grid;
    int32_t tiles = 0;
    for (int32_t b = 0; b < grid.batch; ++b) {
      tiles += (rows_of(batch, b) + grid.tile_rows - 1) / grid.tile_rows;
    }
    ASSERT_GE(grid.num_tiles(), tiles * grid.num_heads);
    ASSERT_LE(grid.num_tiles(), (tiles + grid.batch) * grid.num_heads);
    // Entries past the last sequence are empty.
    TileGrid longer = grid;
    longer.rows += 1000;
    with_rows(batch.cu_rows, [&] {
      for (int32_t index = grid.size(); index < longer.size(); ++index) {
        ASSERT_FALSE(TileDecoder(longer).at(index).exists());
      }
    });
  }
}

TEST(TileGrid, equal_lengths_have_no_empty_entry) {
  const std::vector<int32_t> cu_rows = {0, 512, 1024, 1536};
  TileGrid grid{.batch = 3,
                .num_heads = 2,
                .tile_rows = 128,
                .rows = 1536,
                .cu_rows = cu_rows.data(),
                .most_rows = 512};
  ASSERT_EQ(grid.size(), 3 * 2 * 4);
  const TileDecoder decoder = grid;
  with_rows(cu_rows, [&] {
    for (int32_t index = 0; index < grid.size(); ++index) {
      ASSERT_EQ(decoder.at(index).num_rows, 128) << index;
    }
  });
}

TEST(TileGrid, longest_first_takes_the_last_rows_of_every_head_first) {
  TileGrid grid{.batch = 3,
                .num_heads = 2,
                .tile_rows = 64,
                .rows = 64 * 5 - 1,
                .order = TileOrder::kLongestFirst};
  ASSERT_EQ(grid.size(), 30);
  const TileDecoder padded = grid;
  for (int32_t index = 1; index < 30; ++index) {
    ASSERT_LE(padded.at(index).tile, padded.at(index - 1).tile);
  }
  EXPECT_EQ(padded.at(0).tile, 4);
  EXPECT_EQ(padded.at(0).num_rows, 63);
  const std::vector<int32_t> cu_rows = {0, 640, 700};
  grid.batch = 2;
  grid.rows = 700;
  grid.cu_rows = cu_rows.data();
  const TileDecoder ragged = grid;
  with_rows(cu_rows, [&] {
    for (int32_t index = 1; index < grid.size(); ++index) {
      const TileCoord before = ragged.at(index - 1), now = ragged.at(index);
      if (before.exists() && now.exists() && now.sequence == before.sequence) {
        ASSERT_LE(now.tile, before.tile);
      }
    }
  });
}

TEST(TileGrid, rows_fastest_keeps_the_tiles_of_a_head_together) {
  const TileGrid grid{.batch = 2, .num_heads = 3, .tile_rows = 16, .rows = 64};
  for (int32_t index = 0; index < grid.size(); ++index) {
    const TileCoord tile = TileDecoder(grid).at(index);
    ASSERT_EQ((tile.sequence * 3 + tile.head) * 4 + tile.tile, index);
  }
}

}  // namespace
}  // namespace pagoda::schedule
