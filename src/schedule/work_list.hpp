// WorkList: the work items of a call on the CPU, in the order in which workers take them: longest
// first. An item is a row tile of one sequence (tokens x query heads of one KV head) and a range of
// keys.
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
  int32_t split = 0;  // of the num_splits splits of the visible keys
  int32_t num_splits = 1;
  int32_t partial_row = 0;   // first row of this split's partial result (per KV head)
  int32_t merge_group = -1;  // counter of the splits that are not computed yet; -1 = not split
  bool is_padding = false;   // rows past a padded sequence's valid length

  [[nodiscard]] int32_t rows() const { return token_count * head_count; }
};

// The shape of a kernel's tiles and their costs, in units of one row and one key.
struct WorkShape {
  int32_t max_rows = 0;           // of a tile
  int32_t tile_keys = 0;          // splits are multiples of this
  int32_t rows_per_key_load = 0;  // reading and packing a key costs as much as this many rows
  int32_t workers = 1;
  bool is_batch_invariant = false;
  int32_t most_splits = 0;  // of a tile; 0 = any number
};

struct WorkList {
  std::vector<WorkItem> items;  // each is done once for every KV head
  int32_t num_merge_groups = 0;
  int64_t num_partial_rows = 0;  // per KV head
  int64_t num_split_rows = 0;    // rows of the output that are merged, per KV head
};

[[nodiscard]] WorkList make_work_list(const core::Problem& problem, const WorkShape& shape);

}  // namespace pagoda::schedule
