// LatentWork finds the work tiles of StreamKWork, or, where CTAs share merges, such as cover every
// row tile once: random batches, every CTA, in the emulator.
#include "kernels/mha_sm90/roles/latent_work.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/int_math.hpp"
#include "emulator/machine/launch.hpp"
#include "kernels/common/stream_k_start.hpp"
#include "kernels/mha_sm90/instances.hpp"
#include "kernels/mha_sm90/latent_launch.hpp"
#include "testing/material/expect_report.hpp"

namespace pagoda::mha_sm90 {
namespace {

struct Config {
  using T = arch::BFloat16;
  static constexpr TileConfig tile = latent_tile(576, 512);
};

constexpr int kMostWork = 64;  // of a CTA
constexpr int kWords = sizeof(Work) / sizeof(int32_t);

struct FindsWork {
  struct Params {
    AttentionParams attention;
    arch::GlobalPtr<int32_t> found, wanted;  // [CTA][kMostWork] of Work
  };
  struct Storage {
    kernels::StreamKStorage stream_k;
  };
  static constexpr int kThreads = Config::tile.threads();

  template <class WorkTiles>
  static PAGODA_DEVICE void store_all(WorkTiles& work_tiles, arch::GlobalPtr<int32_t> to) {
    to = to + arch::block_idx().x * (kMostWork * kWords);
    Work work;
    for (int i = 0; i < kMostWork && work_tiles.next(work); ++i, work = Work{}) {
      int32_t words[kWords];
      memcpy(words, &work, sizeof work);
      for (int w = 0; w < kWords; ++w) arch::store(to + (i * kWords + w), words[w]);
    }
  }
  static PAGODA_DEVICE void run(const Params& params) {
    auto& storage = arch::shared_storage<Storage>();
    kernels::find_stream_k_start<Config>(params.attention, storage.stream_k);
    if (arch::thread_idx() == 0) {
      kernels::StreamKWork<Config> work_tiles(params.attention, storage.stream_k.start.load());
      store_all(work_tiles, params.wanted);
    }
    if (arch::warp_idx() != 1) return;
    LatentWork<Config> work_tiles(params.attention);
    if (arch::lane_idx() == 0) store_all(work_tiles, params.found);
  }
};

struct Batch {
  std::vector<int32_t> keys, cu_rows;
  int32_t group = 1, ctas = 1;
  int32_t side_tokens = 1;  // row tiles of a head tile side by side
  bool is_causal = false, is_merge_shared = false;
};

// What the roles see of a work tile. Slots and the split of a row tile that is not split, and the
// columns of a walk without tiles, mean nothing.
std::string text_of(const Work& work) {
  std::string text;
  const auto add = [&text](const char* name, int32_t value) {
    text += std::string(name) + " " + std::to_string(value) + ", ";
  };
  add("sequence", work.sequence);
  add("kv_head", work.kv_head);
  add("first_head", work.first_head);
  add("num_heads", work.num_heads);
  add("first_token", work.first_token);
  add("num_tokens", work.num_tokens);
  add("valid_tokens", work.valid_tokens);
  add("memory_row", work.memory_row);
  add("keys", work.rows.seqlen_kv);
  add("q_position", work.rows.q_position);
  add("rows", work.rows.num_rows);
  add("num_tiles", work.walk.num_tiles);
  if (work.walk.num_tiles > 0) {
    add("start_column", work.walk.start_column);
    add("end_column", work.walk.end_column);
    for (int32_t i = 0; i < work.walk.num_tiles; ++i) {
      text += i >= work.walk.unmasked_begin && i < work.walk.unmasked_end ? 'u' : 'm';
    }
  }
  add(" num_splits", work.num_splits);
  if (work.is_split()) {
    add("split", work.split);
    add("slot", work.slot(work.split));
    for (int32_t i = 0; i < work.num_splits; ++i) add("slot", work.slot(i));
  }
  return text;
}

// The work tiles of each CTA.
using Found = std::vector<std::vector<Work>>;
struct Both {
  Found found, wanted;
};

Both find(const Batch& batch) {
  const int32_t heads = std::min(batch.group, kRows);
  FindsWork::Params params;
  AttentionParams& a = params.attention;
  a.sequences.batch = static_cast<int32_t>(batch.keys.size());
  a.sequences.cu_rows = batch.cu_rows.data();
  a.sequences.keys.kind = operand::KeyRowsKind::kPaged;
  a.sequences.keys.paged.lengths = batch.keys.data();
  a.sequences.keys.paged.page_size = 64;
  a.num_kv_heads = 1;
  a.group = batch.group;
  a.row_block = {heads, kRows / heads, arch::Divisor(heads)};
  a.is_merge_shared = batch.is_merge_shared;
  if (batch.is_causal) a.mask.interval.rule.right = 0;
  const int32_t side_by_side = batch.side_tokens * core::ceil_div(batch.group, heads);
  set_latent_work(batch.ctas, side_by_side, a);
  EXPECT_EQ(a.ctas_per_kv_head, batch.ctas / side_by_side);
  std::vector<int32_t> found(static_cast<size_t>(batch.ctas) * kMostWork * kWords), wanted(found);
  params.found = found.data();
  params.wanted = wanted.data();
  const emulator::Result result = emulator::launch<FindsWork>(
      emulator::shape_of<FindsWork>("finds_work", {batch.ctas}), params,
      {emulator::input("lengths", batch.keys.data(), batch.keys.size()),
       emulator::input("cu_rows", batch.cu_rows.data(), batch.cu_rows.size()),
       emulator::inout("found", found.data(), found.size()),
       emulator::inout("wanted", wanted.data(), wanted.size())});
  EXPECT_EQ(all_reports(result), "");
  const auto read = [&](const std::vector<int32_t>& words) {
    Found all(static_cast<size_t>(batch.ctas));
    for (size_t i = 0; i < all.size() * kMostWork; ++i) {
      Work work;
      memcpy(static_cast<void*>(&work), &words[i * kWords], sizeof work);
      std::vector<Work>& of_cta = all[i / kMostWork];
      if (work.num_tokens == 0) continue;
      EXPECT_EQ(of_cta.size(), i % kMostWork) << "no tokens before it, which ends the CTA";
      of_cta.push_back(work);
    }
    return all;
  };
  return {read(found), read(wanted)};
}

// StreamKWork gives all row tiles of a sequence the same KV tiles; LatentWork ends where the last
// token of the row tile does.
Work clipped(Work work, bool is_causal) {
  const int32_t sees = work.rows.position(work.first_token) + work.num_tokens;
  if (is_causal && work.walk.end_column > sees) {
    work.walk.end_column = sees;
    const int32_t keys = std::max(0, sees - work.walk.start_column);
    work.walk.num_tiles = core::ceil_div(keys, 64);
  }
  return work;
}

void expect_same_work(const Batch& batch) {
  const Both both = find(batch);
  for (size_t cta = 0; cta < both.found.size(); ++cta) {
    ASSERT_EQ(both.found[cta].size(), both.wanted[cta].size()) << "CTA " << cta;
    for (size_t i = 0; i < both.found[cta].size(); ++i) {
      ASSERT_EQ(text_of(both.found[cta][i]), text_of(clipped(both.wanted[cta][i], batch.is_causal)))
          << "CTA " << cta << ", work tile " << i;
    }
  }
}

// The splits of one row tile, by number. In shared merges all but the last are as long.
void expect_whole(const std::vector<Work>& splits, const Batch& batch) {
  const Work& first = splits[0];
  const auto b = static_cast<size_t>(first.sequence);
  const int32_t rows = batch.cu_rows[b + 1] - batch.cu_rows[b], keys = batch.keys[b];
  const int32_t past = first.first_token + first.num_tokens;
  const int32_t visible = batch.is_causal ? std::max(0, keys - rows + past) : keys;
  int32_t column = 0, shortest = INT32_MAX, longest = 0;
  for (size_t i = 0; i < splits.size(); ++i) {
    const Work& work = splits[i];
    EXPECT_EQ(work.split, static_cast<int32_t>(i));
    EXPECT_EQ(work.num_splits, static_cast<int32_t>(splits.size()));
    EXPECT_EQ(work.slot(0), first.slot(0));
    if (i > 0) {
      EXPECT_GT(work.slot(work.split), first.slot(work.split - 1));
    }
    EXPECT_EQ(work.rows.seqlen_kv, keys);
    EXPECT_EQ(work.rows.q_position, keys - rows);
    EXPECT_EQ(work.memory_row, batch.cu_rows[b]);
    if (work.walk.num_tiles == 0) continue;
    EXPECT_EQ(work.walk.start_column, column);
    column = work.walk.end_column;
    EXPECT_EQ(work.walk.num_tiles, core::ceil_div(column - work.walk.start_column, 64));
    longest = std::max(longest, work.walk.num_tiles);
    if (i + 1 < splits.size()) shortest = std::min(shortest, work.walk.num_tiles);
    // Unmasked tiles are those all of whose keys the first token sees.
    const int32_t sees = batch.is_causal ? keys - rows + first.first_token + 1 : keys;
    for (int32_t t = 0; t < work.walk.num_tiles; ++t) {
      EXPECT_EQ(t >= work.walk.unmasked_begin && t < work.walk.unmasked_end,
                work.walk.column(t) + 64 <= sees);
    }
  }
  EXPECT_EQ(column, visible);
  if (batch.is_merge_shared && !batch.is_causal && shortest < INT32_MAX) {
    EXPECT_EQ(shortest, longest);
  }
}

// One where there are no keys: O is still written.
int32_t kv_tiles(int32_t keys) { return std::max(1, core::ceil_div(keys, 64)); }

int32_t num_rows(const Batch& batch, size_t b) { return batch.cu_rows[b + 1] - batch.cu_rows[b]; }

// Row tiles of sequence b in a head tile, and those of the whole batch.
int32_t token_tiles(const Batch& batch, size_t b) {
  return core::ceil_div(num_rows(batch, b), kRows / std::min(batch.group, kRows));
}
size_t num_row_tiles(const Batch& batch) {
  int32_t tiles = 0;
  for (size_t b = 0; b < batch.keys.size(); ++b) tiles += token_tiles(batch, b);
  return static_cast<size_t>(tiles * core::ceil_div(batch.group, kRows));
}

// The shortest splits, in KV tiles, of which each can have a CTA.
int32_t shortest_splits(const Batch& batch) {
  const int32_t ctas = batch.ctas / core::ceil_div(batch.group, kRows);
  for (int32_t tiles = 1;; ++tiles) {
    int32_t splits = 0;
    for (size_t b = 0; b < batch.keys.size(); ++b) {
      splits += token_tiles(batch, b) * core::ceil_div(kv_tiles(batch.keys[b]), tiles);
    }
    if (splits <= ctas) return tiles;
  }
}

void expect_every_row_tile_once(const Batch& batch) {
  const int32_t most = shortest_splits(batch);
  const int32_t heads = std::min(batch.group, kRows), tokens = kRows / heads;
  std::map<std::array<int32_t, 3>, std::vector<Work>> row_tiles;
  for (const std::vector<Work>& of_cta : find(batch).found) {
    ASSERT_LE(of_cta.size(), 1U);  // no CTA has parts of two row tiles
    for (const Work& work : of_cta) {
      row_tiles[{work.sequence, work.first_token, work.first_head}].push_back(work);
    }
  }
  EXPECT_EQ(row_tiles.size(), num_row_tiles(batch));
  for (auto& [where, splits] : row_tiles) {
    const auto [sequence, token, head] = where;
    SCOPED_TRACE(testing::Message() << "sequence " << sequence << ", token " << token);
    const auto b = static_cast<size_t>(sequence);
    EXPECT_EQ(splits[0].num_tokens, std::min(tokens, num_rows(batch, b) - token));
    EXPECT_EQ(splits[0].num_heads, std::min(heads, batch.group - head));
    EXPECT_EQ(splits[0].num_splits, core::ceil_div(kv_tiles(batch.keys[b]), most));
    expect_whole(splits, batch);
  }
}

// Row tiles side by side: every one is covered once, by splits whose slots are no other's, and the
// CTAs of a group have the same KV tiles.
void expect_side_by_side(const Batch& batch) {
  const auto sides = static_cast<size_t>(batch.side_tokens * core::ceil_div(batch.group, kRows));
  std::map<std::array<int32_t, 3>, std::vector<Work>> row_tiles;
  std::map<int32_t, int> slots;
  const Found found = find(batch).found;
  for (size_t cta = 0; cta < found.size(); ++cta) {
    for (const Work& work : found[cta]) {
      row_tiles[{work.sequence, work.first_token, work.first_head}].push_back(work);
      if (work.is_split()) slots[work.slot(work.split)] += 1;
      const auto is_of_sequence = [&work](const Work& other) {
        return other.sequence == work.sequence && other.walk.start_column == work.walk.start_column;
      };
      const std::vector<Work>& first = found[cta / sides * sides];
      EXPECT_TRUE(std::ranges::any_of(first, is_of_sequence)) << "CTA " << cta;
    }
  }
  for (const auto& [slot, users] : slots) {
    EXPECT_EQ(users, 1) << "slot " << slot;
    EXPECT_LT(slot, 2 * batch.ctas);
  }
  EXPECT_EQ(row_tiles.size(), num_row_tiles(batch));
  for (auto& [where, splits] : row_tiles) {
    SCOPED_TRACE(testing::Message() << "sequence " << where[0] << ", token " << where[1]);
    expect_whole(splits, batch);
  }
}

// Whether both take the batch for one of equal row tiles, or neither: StreamKWork asks whether all
// KV tiles are as many as if all sequences were as the first, which others may have by chance.
bool are_both_alike(const Batch& batch) {
  int32_t total = 0, row_tiles = 0, longest = 0, of_first = 0;
  for (size_t b = 0; b < batch.keys.size(); ++b) {
    const int32_t of_sequence = token_tiles(batch, b);
    if (b == 0) of_first = of_sequence * kv_tiles(batch.keys[b]);
    total += of_sequence * kv_tiles(batch.keys[b]);
    row_tiles += of_sequence;
    longest = std::max(longest, kv_tiles(batch.keys[b]));
  }
  const auto size = static_cast<int32_t>(batch.keys.size());
  return (of_first * size == total) == (row_tiles * longest == total);
}

Batch random_batch(std::mt19937& random, int32_t batch, bool is_merge_shared) {
  const auto draw = [&](int32_t low, int32_t high) {
    return std::uniform_int_distribution<int32_t>(low, high)(random);
  };
  constexpr int32_t groups[] = {1, 4, 16, 48, 64, 80, 128, 192};
  Batch result;
  result.group = groups[draw(0, 7)];
  result.is_causal = draw(0, 1) == 0;
  result.is_merge_shared = is_merge_shared;
  const int32_t heads = std::min(result.group, kRows), tokens = kRows / heads;
  const int32_t most_keys = draw(1, 1500), most_rows = draw(1, 2 * std::min(tokens, 8));
  const bool are_alike = draw(0, 3) == 0;
  result.cu_rows = {0};
  int32_t row_tiles = 0;
  for (int32_t b = 0; b < batch; ++b) {
    const int32_t rows = are_alike ? most_rows : draw(0, most_rows);
    result.keys.push_back(are_alike ? most_keys : draw(0, most_keys));
    result.cu_rows.push_back(result.cu_rows.back() + rows);
    row_tiles += core::ceil_div(rows, tokens);
  }
  const int32_t head_tiles = core::ceil_div(result.group, heads);
  result.ctas = head_tiles * (is_merge_shared ? row_tiles + draw(1, 12) : draw(1, 9));
  return result;
}

TEST(LatentWork, is_that_of_any_packed_rows) {
  std::mt19937 random(1);
  for (int i = 0; i < 24; ++i) {
    SCOPED_TRACE(i);
    const Batch batch = random_batch(random, 1 + i % 9, false);
    if (are_both_alike(batch)) expect_same_work(batch);
    expect_side_by_side(batch);
    if (HasFailure()) return;
  }
}
TEST(LatentWork, where_ctas_share_merges) {
  std::mt19937 random(2);
  for (int i = 0; i < 24; ++i) {
    SCOPED_TRACE(i);
    expect_every_row_tile_once(random_batch(random, 1 + i % 7, true));
    if (HasFailure()) return;
  }
}
TEST(LatentWork, of_row_tiles_side_by_side) {
  std::mt19937 random(4);
  for (int i = 0; i < 32; ++i) {
    SCOPED_TRACE(i);
    Batch batch = random_batch(random, 1 + i % 9, false);
    // Some sequences have fewer row tiles; in every fourth batch some have more.
    for (size_t b = 0; b < batch.keys.size(); ++b) {
      batch.side_tokens = std::max(batch.side_tokens, token_tiles(batch, b));
    }
    if (i % 4 == 3) batch.side_tokens = core::ceil_div(batch.side_tokens, 2);
    batch.ctas *= batch.side_tokens;
    expect_side_by_side(batch);
    if (HasFailure()) return;
  }
}
// 24 row tiles of 48 KV tiles, 66 CTAs: two splits of 24 each, not of 28 and 20.
TEST(LatentWork, as_short_splits_as_the_ctas_allow) {
  Batch batch{.keys = std::vector<int32_t>(24, 3072),
              .cu_rows = std::vector<int32_t>(25),
              .group = 128,
              .ctas = 132,
              .is_causal = false,
              .is_merge_shared = true};
  for (int32_t i = 0; i < 25; ++i) batch.cu_rows[static_cast<size_t>(i)] = i;
  const Both both = find(batch);
  for (size_t cta = 0; cta < both.found.size(); ++cta) {
    ASSERT_EQ(both.found[cta].size(), cta < 96 ? 1U : 0U);
    if (cta < 96) {
      EXPECT_EQ(both.found[cta][0].walk.num_tiles, 24);
    }
  }
}
// The same of more sequences than lanes: three splits of 14 of 41 KV tiles.
TEST(LatentWork, as_short_splits_of_sequences_as_long_as_each_other) {
  for (const int32_t sequences : {1, 25, 39, 66}) {
    SCOPED_TRACE(sequences);
    const auto size = static_cast<size_t>(sequences);
    Batch batch{.keys = std::vector<int32_t>(size, 2584),
                .cu_rows = std::vector<int32_t>(size + 1),
                .group = 16,
                .ctas = 132,
                .is_causal = false,
                .is_merge_shared = true};
    for (size_t i = 0; i <= size; ++i) batch.cu_rows[i] = static_cast<int32_t>(i);
    expect_every_row_tile_once(batch);
  }
}
// 13, 10 and 16 KV tiles, six CTAs: splits of up to 7 tiles are seven, of 8 six, of 10 five.
TEST(LatentWork, as_short_splits_of_unequal_sequences) {
  expect_every_row_tile_once({.keys = {13 * 64, 10 * 64, 16 * 64},
                              .cu_rows = {0, 1, 2, 3},
                              .group = 64,
                              .ctas = 6,
                              .is_causal = false,
                              .is_merge_shared = true});
}
TEST(LatentWork, of_several_sequences_a_lane) {
  std::mt19937 random(3);
  for (const int32_t batch : {32, 33, 70}) {
    SCOPED_TRACE(batch);
    const Batch calls = random_batch(random, batch, false);
    if (are_both_alike(calls)) expect_same_work(calls);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace pagoda::mha_sm90
