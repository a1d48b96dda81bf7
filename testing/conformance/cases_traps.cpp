// Cases for bugs that have occurred in kernels of this kind, in Pagoda or in public histories.
// Each is tagged trap_...; docs/kernels/sm100_mha_2q.md lists them.
#include <string>
#include <utility>

#include "testing/conformance/case_list.hpp"
#include "testing/conformance/mask_material.hpp"

namespace pagoda::conformance {
namespace {

NamedMask window(int64_t keys) {
  return {"window" + std::to_string(keys),
          [=](MaskMaterial&) { return Mask::window(keys - 1, 0); }};
}
NamedMask chunked(int64_t size) {
  return {"chunked" + std::to_string(size) + "_causal",
          [=](MaskMaterial&) { return Mask::chunked(size) & Mask::causal(); }};
}

// Two query heads of one KV head; KV tiles of the GPU kernels are of 64 to 192 keys.
Case trap(const char* tag, int32_t dim, NamedMask mask, NamedLengths lengths) {
  Case c;
  c.q_dtype = c.kv_dtype = DType::kBF16;
  c.dim_qk = c.dim_vo = dim;
  c.mask = std::move(mask);
  c.lengths = std::move(lengths);
  c.tag = std::string("trap_") + tag;
  return c;
}

// Stale shared memory and the slots past the end of a sequence hold NaN; their probability is 0,
// and 0 * NaN is NaN.
void add_stale_memory(CaseList& list) {
  // Every stage of a ring has held the NaN of some sequence's end before a shorter sequence uses
  // it.
  const NamedLengths tails{"tails",
                           {{1, 127}, {1, 65}, {1, 33}, {2, 17}, {1, 5}, {1, 1}, {1, 130}}};
  list.add(trap("stale_v", 64, causal(), tails));
  list.add(trap("stale_v", 128, causal(), tails));
  Case c = trap("stale_v", 128, causal(), tails);
  c.q_dtype = c.kv_dtype = DType::kF8E4M3;  // products take 32 keys at a time
  list.add(c);
  // The last page of a prompt's chunk is partly filled: 456 keys from before, 128 new ones, in
  // pages of 64.
  c = trap("partial_page", 64, causal(), {"chunk584", {{128, 584}}});
  c.page_size = 64;
  list.add(c);
  // A window starts inside a tile: the length of the last product counts from there.
  c = trap("tail_after_window", 128, window(150), {"decode", {{1, 331}, {3, 260}, {1, 1030}}});
  c.page_size = 64;
  list.add(c);
}

// Page tables: entries past the end are invalid; page size and tile size need not divide one
// another.
void add_page_tables(CaseList& list) {
  for (const int32_t page_size : {48, 96, 24}) {
    Case c =
        trap("page_beside_tile", 128, causal(), {"edges", {{1, 95}, {5, 97}, {1, 193}, {2, 48}}});
    c.page_size = page_size;
    list.add(c);
  }
  // Caches that end around a page boundary: verified drafts of one to five tokens.
  Case c = trap("page_straddled", 128, causal(),
                {"drafts", {{1, 256}, {2, 257}, {3, 258}, {4, 260}, {5, 6}, {1, 255}}});
  c.page_size = 256;
  c.q_heads = 4;
  list.add(c);
  // Rows of the table of all lengths, read eight entries at a time: entries past the row are no
  // pages.
  c = trap("table_read_ahead", 64, causal(),
           {"pages", {{1, 16}, {1, 48}, {1, 144}, {1, 145}, {1, 272}}});
  c.storage = KVStorage::kInterleaved;
  list.add(c);
}

// Intervals that leave a tile, a split or half of the rows without a visible key.
void add_empty_intervals(CaseList& list) {
  // The first half of the rows has positions before the first key.
  list.add(trap("half_sees_nothing", 128, causal(), {"morequeries", {{130, 40}, {70, 3}}}));
  // KV tiles of one half are masked for the other half.
  list.add(trap("window_empties_a_half", 64, window(8), {"prefill200", {{200, 200}}}));
  list.add(trap("window_empties_a_half", 128, window(40), {"chunk", {{129, 500}}}));
  // Fewer visible keys than the length suggests: 512 of 1025, then far fewer of many.
  Case c = trap("window_empties_splits", 128, window(512), {"decode1025", {{1, 1025}}});
  c.q_heads = 12;
  list.add(c);
  c = trap("window_empties_splits", 64, window(77), {"decode2008", {{1, 2008}, {1, 30}}});
  c.sinks = 1.0F;
  list.add(c);
  // A mask without an upper bound: keys past the end of the sequence are masked all the same.
  list.add(trap("open_to_the_right", 64,
                {"windowleft", [](MaskMaterial&) { return Mask::window(20, -1); }},
                {"mixed", {{1, 131}, {40, 70}, {2, 193}}}));
  // Rows of a tile on both sides of a chunk's border, chunks as long as tiles.
  list.add(trap("chunk_border", 128, chunked(128), {"chunk", {{70, 300}, {129, 129}}}));
  list.add(trap("chunk_border", 64, chunked(192), {"chunk", {{70, 420}, {1, 193}}}));
  // Valid lengths of zero next to others.
  list.add(trap(
      "no_valid_key", 64,
      {"padding_causal", [](MaskMaterial& m) { return m.padding() & Mask::causal(); }},
      {"nine", {{1, 9}, {2, 90}, {1, 2}, {30, 30}, {1, 1}, {3, 3}, {1, 200}, {4, 4}, {1, 2}}}));
}

// Sinks and statistics.
void add_row_ends(CaseList& list) {
  // A sink is added once per row, whatever the number of splits: scores are 0, so its weight is
  // known.
  for (const int32_t dim : {64, 128}) {
    Case c = trap("sink_counts_once", dim, causal(), {"decode1500", {{1, 1500}, {2, 300}}});
    c.amplitude = 0;
    c.sinks = 3.0F;
    list.add(c);
  }
  // A sink far above all scores, with rows without visible keys.
  Case c = trap("sink_above_all", 64, window(96), {"mixed", {{1, 800}, {20, 3}, {9, 130}}});
  c.q_heads = 8;
  c.sinks = 12.0F;
  list.add(c);
  // KV splits, and whole rows, with LSE = -infinity.
  c = trap("minus_infinity", 128,
           {"bits", [](MaskMaterial& m) { return m.bits(0, 0.004) & Mask::causal(); }},
           {"decode", {{3, 900}, {1, 64}, {2, 1}}});
  list.add(c);
  // Head dim 64 reads scores twice and writes masked ones back.
  c.dim_qk = c.dim_vo = 64;
  list.add(c);
}

// The arguments of masks and biases: absolute positions, the query's head, the sequence.
void add_coordinates(CaseList& list) {
  const NamedMask additive{"additive4",
                           [](MaskMaterial& m) { return m.additive(4, false, false); }};
  for (const int32_t dim : {64, 128}) {
    Case c =
        trap("mask_of_head_and_sequence", dim, additive, {"mixed", {{1, 140}, {50, 60}, {3, 20}}});
    c.q_heads = 6;
    c.kv_heads = 2;
    list.add(c);
  }
  // Positions that are not at the end of the keys: cross attention with a bias of distance.
  Case c = trap("positions_not_rows", 64, causal(),
                {"placed", {{5, 190, 140}, {20, 64, 0}, {1, 30, 29}}});
  c.has_alibi = true;
  list.add(c);
}

// Batches with empty sequences.
void add_nothing(CaseList& list) {
  // Cross attention: some sequence has no keys, another no queries; rows of both halves.
  Case c = trap("cross_without_keys", 128, {},
                {"cross", {{3, 0}, {140, 20}, {0, 50}, {66, 0}, {1, 129}}});
  c.kv_layout = KVLayout::kRagged;
  list.add(c);
  c.kv_layout = KVLayout::kBlockTable;
  list.add(c);
  list.add(trap("no_queries", 64, causal(),
                {"gaps", {{0, 40}, {0, 0}, {65, 70}, {0, 3}, {1, 100}, {0, 200}}}));
  // A prompt of one token looks like decode, but has no cached keys.
  list.add(trap("first_token", 128, causal(), {"ones", {{1, 1}, {1, 1}, {1, 2}}}));
}

// Rows of a tile: groups that do not divide a half leave padding rows; prompts end inside a half.
void add_row_tiles(CaseList& list) {
  Case c =
      trap("rows_end_inside_a_half", 128, causal(), {"prompts", {{43, 43}, {85, 90}, {42, 42}}});
  c.q_heads = 3;
  list.add(c);
  c = trap("rows_end_inside_a_half", 64, causal(), {"prompts", {{26, 100}, {51, 51}, {25, 25}}});
  c.q_heads = 5;
  list.add(c);
  // Outputs twice as wide as queries are stored through Q's shared memory in two passes; the last
  // one may have few columns.
  for (const auto& [qk, vo] : {std::pair{64, 64}, {48, 24}, {128, 128}, {112, 72}}) {
    c = trap("out_wider_than_q", qk, causal(), {"rowedges", {{63, 100}, {64, 130}, {129, 129}}});
    c.q_dtype = c.kv_dtype = DType::kF8E4M3;
    c.dim_vo = vo;
    list.add(c);
  }
  // Decode and prompts in one batch: rows of one half and of two halves, each with its own
  // schedule.
  c = trap("decode_beside_prompts", 128, causal(),
           {"batch", {{1, 700}, {150, 150}, {1, 3}, {64, 64}, {65, 65}}});
  list.add(c);
}

}  // namespace

void add_traps(CaseList& list) {
  add_stale_memory(list);
  add_page_tables(list);
  add_empty_intervals(list);
  add_row_ends(list);
  add_coordinates(list);
  add_nothing(list);
  add_row_tiles(list);
}

}  // namespace pagoda::conformance
