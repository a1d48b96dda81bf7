// Row tiles of all sequences, their splits, and the order in which workers take them.
#include "schedule/work_list.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "core/int_math.hpp"
#include "mask/expression.hpp"
#include "schedule/split_kv.hpp"

namespace pagoda::schedule {
namespace {

using core::ceil_div;

// Batch-invariant calls split every sequence at multiples of this many visible keys, independent of
// the rest of the batch and of the number of workers.
constexpr int32_t kInvariantSplitKeys = 4096;
constexpr int32_t kMaxSplits = 128;

int64_t cost(const WorkItem& item, const WorkShape& shape) {
  const int64_t keys = item.key_end - item.key_begin;
  return (keys + 16) * (core::align_up(item.rows(), 16) + shape.rows_per_key_load);
}

// Rows of a tile: as many as the kernel can take, or fewer where too few tiles would keep the
// workers busy. Smaller row tiles are cheaper than KV splits, which must be merged.
int32_t tile_rows(const core::Problem& problem, const WorkShape& shape) {
  constexpr int32_t kFewestRows = 64;
  int32_t rows = shape.max_rows;
  if (shape.is_batch_invariant || shape.workers == 1) return rows;
  for (; rows / 2 >= std::max(kFewestRows, problem.group); rows /= 2) {
    int64_t tiles = 0;
    for (int32_t b = 0; b < problem.batch; ++b) {
      tiles += ceil_div<int64_t>(int64_t{problem.seqlen_q(b)} * problem.group, rows);
    }
    if (tiles * problem.num_kv_heads >= int64_t{4} * shape.workers) break;
  }
  return rows;
}

// All row tiles of all sequences, unsplit.
std::vector<WorkItem> query_tiles(const core::Problem& problem, const WorkShape& shape) {
  std::vector<WorkItem> items;
  items.reserve(static_cast<size_t>(problem.batch) * 2);
  const int32_t max_rows = tile_rows(problem, shape);
  const int32_t head_parts = ceil_div(problem.group, max_rows);
  const int32_t heads_per_part = ceil_div(problem.group, head_parts);
  const int32_t tokens_per_tile = std::max(1, max_rows / heads_per_part);
  for (int32_t b = 0; b < problem.batch; ++b) {
    const int32_t seqlen_q = problem.seqlen_q(b);
    const int32_t seqlen_kv = problem.seqlen_kv(b);
    const int32_t position = problem.q_position(b);
    const auto add_tile = [&](int32_t token, int32_t tokens, bool is_padding) {
      mask::Interval first;
      mask::Interval last;
      if (!is_padding) {
        first = mask::visible_interval(problem.mask, b, position + token, seqlen_kv);
        last = mask::visible_interval(problem.mask, b, position + token + tokens - 1, seqlen_kv);
      }
      WorkItem item;
      item.sequence = b;
      item.token_begin = token;
      item.token_count = tokens;
      item.is_padding = is_padding;
      item.key_begin = first.lo;
      item.key_end = std::max(item.key_begin, last.hi);
      for (int32_t head = 0; head < problem.group; head += heads_per_part) {
        item.head_begin = head;
        item.head_count = std::min(heads_per_part, problem.group - head);
        items.push_back(item);
      }
    };
    for (int32_t token = 0; token < seqlen_q;) {
      const int32_t tokens = std::min(tokens_per_tile, seqlen_q - token);
      add_tile(token, tokens, false);
      token += tokens;
    }
    const int32_t rows = problem.num_rows(b);
    for (int32_t token = seqlen_q; token < rows;) {
      const int32_t tokens = std::min(tokens_per_tile, rows - token);
      add_tile(token, tokens, true);
      token += tokens;
    }
  }
  return items;
}

// Into how many splits the keys of a tile are divided.
int32_t num_splits(const WorkItem& item, const WorkShape& shape, int64_t max_cost) {
  const int32_t keys = item.key_end - item.key_begin;
  if (shape.most_splits == 1) return 1;
  if (shape.is_batch_invariant) return std::max(1, ceil_div(keys, kInvariantSplitKeys));
  if (shape.workers == 1) return 1;
  const int64_t wanted = ceil_div(cost(item, shape), std::max<int64_t>(max_cost, 1));
  const int64_t possible = std::max(1, keys / (2 * shape.tile_keys));
  const int64_t most = shape.most_splits > 0 ? shape.most_splits : kMaxSplits;
  return static_cast<int32_t>(std::min({wanted, possible, most, int64_t{kMaxSplits}}));
}

void append_split(const WorkItem& tile, int32_t splits, const WorkShape& shape, WorkList& list) {
  if (splits == 1) {
    list.items.push_back(tile);
    return;
  }
  const SplitKV split = shape.is_batch_invariant
                            ? parts_of(tile.key_begin, tile.key_end, kInvariantSplitKeys)
                            : split_kv(tile.key_begin, tile.key_end, splits, shape.tile_keys);
  const int32_t count = split.num_parts;
  if (count == 1) {
    list.items.push_back(tile);
    return;
  }
  for (int32_t s = 0; s < count; ++s) {
    WorkItem item = tile;
    item.key_begin = split.part(s).lo;
    item.key_end = split.part(s).hi;
    item.split = s;
    item.num_splits = count;
    item.merge_group = list.num_merge_groups;
    item.partial_row = static_cast<int32_t>(list.num_partial_rows) + s * tile.rows();
    list.items.push_back(item);
  }
  ++list.num_merge_groups;
  list.num_partial_rows += static_cast<int64_t>(count) * tile.rows();
  list.num_split_rows += tile.rows();
}

// Longest first, with costs rounded down to a quarter of a power of two; equal ones keep their
// order.
void sort_by_cost(std::vector<WorkItem>& items, const WorkShape& shape) {
  constexpr size_t kBuckets = 64 * 4;
  std::array<int32_t, kBuckets + 1> begin{};
  std::vector<uint8_t> bucket(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    const auto c = static_cast<uint64_t>(cost(items[i], shape)) << 2;
    // Leaves the highest bit and two more, the quarters.
    const int shift = std::max(static_cast<int>(std::bit_width(c)) - 3, 0);
    const auto rank = static_cast<size_t>(shift) * 4 + ((c >> shift) & 3);
    bucket[i] = static_cast<uint8_t>(kBuckets - 1 - rank);
    ++begin[bucket[i] + size_t{1}];
  }
  for (size_t k = 0; k < kBuckets; ++k) begin[k + 1] += begin[k];
  std::vector<WorkItem> sorted(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    sorted[static_cast<size_t>(begin[bucket[i]]++)] = items[i];
  }
  items.swap(sorted);
}

}  // namespace

WorkList make_work_list(const core::Problem& problem, const WorkShape& shape) {
  const std::vector<WorkItem> tiles = query_tiles(problem, shape);
  int64_t total = 0;
  for (const WorkItem& tile : tiles) total += cost(tile, shape);
  // A quarter of a worker's part of the work, so that the last items to finish are short.
  const int64_t max_cost = total * problem.num_kv_heads / (int64_t{4} * shape.workers);

  WorkList list;
  list.items.reserve(tiles.size() + 64);
  for (const WorkItem& tile : tiles) {
    append_split(tile, num_splits(tile, shape, max_cost), shape, list);
  }
  sort_by_cost(list.items, shape);
  return list;
}

}  // namespace pagoda::schedule
