// WorkList: the call cut into pieces that workers take one by one, longest first. A piece is a tile
// of query rows of one sequence (tokens x query heads of one KV head) and a range of keys.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"

namespace pagoda::schedule {

struct WorkItem {
  int32_t sequence = 0;
  int32_t token_begin = 0;
  int32_t token_count = 0;
  int32_t head_begin = 0;  // within the group of one KV head
  int32_t head_count = 0;
  int32_t key_begin = 0;  // visible keys of these tokens; empty: the output is a constant
  int32_t key_end = 0;
  int32_t split = 0;  // of num_splits pieces of the visible keys
  int32_t num_splits = 1;
  int32_t partial_row = 0;   // first row of this piece's partial result (per KV head)
  int32_t merge_group = -1;  // counter of the pieces that are still to come; -1 = not split
  bool is_padding = false;   // rows past a padded sequence's valid length

  [[nodiscard]] int32_t rows() const { return token_count * head_count; }
};

// What a kernel's tiles look like and what they cost; all costs in one unit, say a row of one key.
struct WorkShape {
  int32_t max_rows = 0;           // of a tile
  int32_t tile_keys = 0;          // splits are multiples of this
  int32_t rows_per_key_load = 0;  // reading and packing a key costs as much as this many rows
  int32_t workers = 1;
  bool is_batch_invariant = false;
};

struct WorkList {
  std::vector<WorkItem> items;  // each is done once for every KV head
  int32_t num_merge_groups = 0;
  int64_t num_partial_rows = 0;  // per KV head
  int64_t num_split_rows = 0;    // rows of the output that are merged, per KV head
};

[[nodiscard]] WorkList make_work_list(const core::Problem& problem, const WorkShape& shape);

}  // namespace pagoda::schedule
