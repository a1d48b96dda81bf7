// Cases about types and extremes: fp8, emptiness, large numbers, long caches, far addresses,
// repeated bits, batch invariance.
#include <cstdint>
#include <string>

#include "testing/conformance/case_list.hpp"
#include "testing/conformance/mask_material.hpp"

namespace pagoda::conformance {
namespace {

NamedMask window(int64_t left) {
  return {"window" + std::to_string(left + 1),
          [=](MaskMaterial&) { return Mask::window(left, 0); }};
}

Case typed(DType dtype) {
  Case c;
  c.q_dtype = c.kv_dtype = dtype;
  c.mask = causal();
  return c;
}

}  // namespace

void add_fp8(CaseList& list) {
  for (const DType q_dtype : {DType::kBF16, DType::kF16, DType::kF8E4M3}) {
    for (const Scales scales : {Scales::kNone, Scales::kPerTensor, Scales::kPerHead}) {
      Case c = typed(q_dtype);
      c.kv_dtype = DType::kF8E4M3;
      c.q_heads = 6;
      c.kv_heads = 3;
      c.dim_qk = c.dim_vo = 128;
      c.scales = scales;
      c.lengths = {"decode", {{1, 100}, {1, 17}}};
      list.add(c);
      c.lengths = {"three", {{1, 33}, {15, 40}, {18, 18}}};
      c.dim_qk = c.dim_vo = 64;
      list.add(c);
      c.kv_layout = KVLayout::kDense;
      c.sinks = 0.5F;
      c.mask = window(11);
      c.inner_gap = 5;
      list.add(c);
    }
  }
}

// Prompts of 256 tokens and more: where there are several row tiles for each multiprocessor, those
// of Hopper have 192 tokens. The first cases have enough for the emulator's three multiprocessors,
// the last one for an H200; the emulator leaves it out for its number of multiply-adds.
void add_tall_rows(CaseList& list) {
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    Case first = typed(dtype);
    first.q_heads = 4;
    first.kv_heads = 2;
    first.dim_qk = first.dim_vo = 128;
    first.page_size = 64;
    first.lengths = {"prompts", {{300, 300}, {70, 20}, {193, 0}}};
    list.add(first);
    Case c = first;
    c.dim_qk = c.dim_vo = 96;
    list.add(c);
    c = first;
    c.mask = window(99);
    c.sinks = 0.5F;
    list.add(c);
    c = first;
    c.mask = {};
    c.is_q_ragged = false;
    c.padding_rows = 5;
    c.out = DType::kF32;
    list.add(c);
  }
  for (const int32_t dim : {64, 128}) {
    Case c = typed(DType::kF8E4M3);
    c.scales = Scales::kPerHead;
    c.q_heads = 4;
    c.kv_heads = 2;
    c.dim_qk = c.dim_vo = dim;
    c.page_size = 64;
    c.lengths = {"prompts", {{300, 300}, {70, 20}, {193, 0}}};
    list.add(c);
    c.mask = {};
    c.scales = Scales::kNone;
    c.out = DType::kF16;
    list.add(c);
  }
  Case many = typed(DType::kBF16);
  many.dim_qk = many.dim_vo = 128;
  many.mask = {};
  many.page_size = 64;
  many.lengths = {"prompts33", std::vector<Sequence>(33, {384, 130})};
  list.add(many);
}

// One row tile more than multiprocessors: Hopper splits the last ones alone. The emulator has three
// multiprocessors, an H200 has 132; the last case is left out where there are few.
void add_last_waves(CaseList& list) {
  Case first = typed(DType::kBF16);
  first.mask = {};
  first.page_size = 64;
  first.lengths = {"wave_of_four", {{66, 1410}, {66, 1410}}};  // two heads
  list.add(first);
  Case c = first;
  c.dim_qk = c.dim_vo = 96;
  c.out = DType::kF32;
  list.add(c);
  c = first;
  c.mask = causal();  // all row tiles see nearly all keys
  c.sinks = 0.5F;
  c.q_heads = 4;
  c.lengths = {"wave_of_four", {{66, 1410}}};
  list.add(c);
  c = first;
  c.is_q_ragged = false;
  c.padding_rows = 5;
  c.kv_layout = KVLayout::kDense;
  list.add(c);
  c = first;
  c.dim_qk = c.dim_vo = 16;  // the same row tiles for less work of the reference
  c.lengths = {"wave_of_134", std::vector<Sequence>(67, {66, 1410})};
  list.add(c);
}

// Two row tiles over many keys for the emulator's three multiprocessors, which Hopper divides into
// equal shares; in the last case 70 for the 132 of an H200. Windows keep both heads of a group from
// one row tile: larger head dims have no shares if each row tile loads keys of its own.
void add_equal_shares(CaseList& list) {
  Case first = typed(DType::kBF16);
  first.kv_heads = 2;
  first.mask = {};
  first.page_size = 64;
  first.dim_qk = first.dim_vo = 16;
  first.lengths = {"shares", {{17, 4800}}};
  list.add(first);
  Case c = first;
  c.q_heads = 6;  // three in a row tile
  c.lengths = {"shares", {{40, 4800}}};
  list.add(c);
  c = first;
  c.q_heads = c.kv_heads = 1;
  c.lengths = {"shares_uneven", {{17, 4800}, {17, 100}}};
  list.add(c);
  c.lengths = {"shares_without_keys", {{17, 4800}, {17, 0}}};
  list.add(c);
  c = first;
  c.kv_heads = 1;
  c.mask = window(4750);
  c.sinks = 0.5F;
  c.out = DType::kF32;
  c.dim_qk = c.dim_vo = 64;
  list.add(c);
  c.q_dtype = c.kv_dtype = DType::kF16;
  c.out = {};
  c.is_q_ragged = false;
  c.padding_rows = 5;
  c.kv_layout = KVLayout::kDense;
  c.dim_qk = c.dim_vo = 104;
  list.add(c);
  c.q_dtype = c.kv_dtype = DType::kBF16;
  c.mask = window(4150);
  c.dim_qk = c.dim_vo = 136;
  c.lengths = {"shares", {{17, 4300}}};
  list.add(c);
  c = first;
  c.q_heads = c.kv_heads = 1;
  c.lengths = {"shares_of_70", std::vector<Sequence>(70, {62, 3300})};
  list.add(c);
}

// Enough row tiles of few keys for short ones (Hopper, head dims up to 64): twelve with three
// multiprocessors, 528 with 132.
void add_short_tiles(CaseList& list) {
  Case first = typed(DType::kBF16);
  first.q_heads = 4;
  first.kv_heads = 2;
  first.lengths = {"short_tiles", {{130, 130}, {200, 260}, {66, 20}, {1, 64}}};
  first.sinks = 0.5F;
  list.add(first);
  Case c = first;
  c.mask = window(39);
  c.page_size = 32;
  c.dim_qk = c.dim_vo = 40;
  list.add(c);
  c = first;
  c.q_dtype = c.kv_dtype = DType::kF16;
  c.out = DType::kF32;
  c.mask = {};
  c.is_q_ragged = false;
  c.padding_rows = 3;
  c.kv_layout = KVLayout::kDense;
  c.padding_keys = 2;
  list.add(c);
  c = first;
  c.q_heads = 16;
  c.dim_qk = c.dim_vo = 16;  // the same row tiles for less work of the reference
  c.lengths = {"short_tiles64", std::vector<Sequence>(64, {70, 100})};
  list.add(c);
}

// More row tiles than Hopper computes by one consumer each, on an H200, and of more keys than short
// ones: several consumers, head dims 64 (the padding of 16), 128 and 256.
void add_many_tiles(CaseList& list) {
  for (const int32_t dim : {128, 256}) {
    Case c = typed(DType::kBF16);
    c.q_heads = 16;
    c.kv_heads = 4;
    c.dim_qk = c.dim_vo = dim;
    c.page_size = 64;
    c.mask = {};
    c.lengths = {"tiles148", std::vector<Sequence>(9, {66, 100})};
    list.add(c);
    c.lengths = {"tiles297", std::vector<Sequence>(18, {66, 100})};
    c.mask = window(39);
    list.add(c);
    c.mask = causal();  // of head dim 128 short ones
    list.add(c);
    c.page_size = 32;
    c.sinks = 0.5F;
    c.lengths = {"tiles312", std::vector<Sequence>(5, {250, 400})};
    list.add(c);
  }
  Case c = typed(DType::kBF16);
  c.dim_qk = c.dim_vo = 16;
  c.q_heads = 8;
  c.kv_heads = 2;
  c.lengths = {"keys2100", {{1100, 2100}}};
  list.add(c);
  c.q_heads = 2;
  c.page_size = 64;
  c.mask = {};
  c.lengths = {"keys1100", {{66, 1100}, {200, 1050}}};
  list.add(c);
}

// Splits of few row tiles, which all CTAs of a row tile merge on Hopper: some of no visible keys,
// more than 16, rows past the end of a sequence, O of other types, and as many as the plan chooses.
void add_shared_merges(CaseList& list) {
  Case c = typed(DType::kBF16);
  c.num_sms = 132;
  c.page_size = 64;
  c.mask = causal();
  c.sinks = 0.5F;
  c.num_kv_splits = 24;
  c.tag = "splits24";
  c.lengths = {"scheduled", {{20, 2700}}};
  list.add(c);
  c.dim_qk = c.dim_vo = 128;
  c.num_kv_splits = 7;
  c.tag = "splits7";
  c.lengths = {"scheduled", {{70, 900}, {3, 20}, {130, 1000}, {9, 0}}};
  list.add(c);
  c.out = DType::kF32;
  c.dim_qk = c.dim_vo = 104;
  c.outputs_have_gaps = true;
  list.add(c);
  c = typed(DType::kF16);
  c.num_sms = 132;
  c.dim_qk = c.dim_vo = 256;
  c.mask = window(300);
  c.num_kv_splits = 9;
  c.tag = "splits9";
  c.lengths = {"scheduled", {{66, 700}, {130, 400}}};
  list.add(c);
  c.wants_statistics = false;
  c.kv_heads = c.q_heads = 1;
  c.num_kv_splits = 0;
  c.tag.clear();
  c.mask = {};
  for (const int32_t dim : {64, 128, 256}) {
    c.dim_qk = c.dim_vo = dim;
    c.lengths = {"splits", {{40, 1500}}};
    list.add(c);
  }
}

// Row tiles of several query heads of a group on Hopper: blocks of rows that they fill and blocks
// that keep empty rows, sequences that end in a block, in splits, of all O's types, over an fp8
// cache.
void add_packed_heads(CaseList& list) {
  Case first = typed(DType::kBF16);
  first.num_sms = 132;
  first.page_size = 16;
  first.mask = causal();
  first.sinks = 0.5F;
  first.tag = "heads";
  first.q_heads = 14;  // 63 rows of 9 tokens
  first.kv_heads = 2;
  first.lengths = {"scheduled",
                   {{20, 130},
                    {18, 130},
                    {20, 99},
                    {9, 64},
                    {20, 130},
                    {1, 30},
                    {20, 128},
                    {17, 17},
                    {20, 0},
                    {20, 130},
                    {10, 130},
                    {20, 77}}};
  for (const int32_t dim : {64, 128}) {
    Case c = first;
    c.dim_qk = c.dim_vo = dim;
    list.add(c);
    c.kv_dtype = DType::kF8E4M3;
    c.scales = Scales::kPerHead;
    list.add(c);
  }
  Case c = first;
  c.dim_qk = c.dim_vo = 128;
  c.num_kv_splits = 2;
  c.outputs_have_gaps = true;
  c.tag = "heads_splits2";
  list.add(c);
  c = typed(DType::kF16);
  c.num_sms = 132;
  c.tag = "heads";
  c.wants_statistics = false;
  c.q_heads = 12;  // 64 rows of 16 tokens
  c.kv_heads = 3;
  c.mask = causal();
  // More row tiles of one head than 264, the places of two CTAs a multiprocessor.
  c.lengths = {"scheduled", {{16, 90}, {17, 90}, {16, 70}, {19, 64}, {17, 17}, {16, 40}, {5, 90}}};
  c.lengths.sequences.resize(28, {16, 80});
  for (const int32_t dim : {64, 96, 128}) {
    c.dim_qk = c.dim_vo = dim;
    list.add(c);
  }
  c.mask = {};
  c.out = DType::kF32;
  c.q_heads = 10;  // 60 rows of 12 tokens
  c.kv_heads = 2;
  c.lengths = {"scheduled",
               {{13, 70},
                {13, 70},
                {25, 70},
                {13, 0},
                {12, 33},
                {25, 70},
                {24, 40},
                {13, 64},
                {13, 70},
                {13, 20},
                {13, 70},
                {25, 70},
                {13, 70},
                {5, 70}}};
  for (const int32_t dim : {192, 256}) {
    c.dim_qk = dim;
    c.dim_vo = dim == 192 ? 128 : dim;
    list.add(c);
  }
  c = first;  // shared merges
  c.lengths = {"splits", {{10, 2500}, {9, 2400}}};
  list.add(c);
}

// e4m3 queries of few tokens, whose row tiles have several heads where those have one scale of Q.
void add_few_e4m3_rows(CaseList& list) {
  for (const int32_t dim : {64, 128, 256}) {
    Case first = typed(DType::kF8E4M3);
    first.tag = "fewrows";
    first.dim_qk = first.dim_vo = dim;
    first.num_sms = 20;  // so few that heads are packed
    first.page_size = 64;
    first.mask = causal();
    first.q_heads = 10;  // 60 rows of 12 tokens
    first.kv_heads = 2;
    first.scales = Scales::kPerHead;
    first.lengths = {"scheduled", {{25, 700}, {1, 300}, {12, 64}, {13, 0}, {0, 9}, {64, 64}}};
    for (const Scales q_scales : {Scales::kNone, Scales::kPerHead, Scales::kPerSequence}) {
      Case c = first;
      c.q_scales = q_scales;
      list.add(c);
    }
    Case c = first;
    c.sinks = 0.5F;
    c.q_heads = 12;  // 64 rows of 16 tokens
    c.kv_heads = 3;
    c.out = DType::kF32;
    c.lengths = {"decode", {{1, 1500}, {1, 1}, {1, 129}}};
    list.add(c);
    c.mask = window(99);
    c.out = {};
    c.lengths = {"scheduled", {{16, 500}, {17, 17}, {3, 2}}};
    list.add(c);
    c = first;  // shared merges
    c.lengths = {"splits", {{10, 1000}, {9, 900}}};
    list.add(c);
  }
}

// fp8 caches under enough rows for row tiles of tokens: tiles of several pages, pages of several
// tiles, a sequence's end in a tile, sequences without keys, and short ones beside them.
void add_fp8_prefill(CaseList& list) {
  for (const DType q_dtype : {DType::kBF16, DType::kF16}) {
    Case first = typed(q_dtype);
    first.kv_dtype = DType::kF8E4M3;
    first.scales = Scales::kPerHead;
    first.q_heads = 4;
    first.kv_heads = 2;
    first.lengths = {"long", {{70, 150}, {130, 330}, {66, 20}, {2, 300}, {90, 0}}};
    for (const auto& [dim_qk, dim_vo] :
         {std::pair{64, 64}, {56, 64}, {80, 96}, {128, 128}, {120, 72}, {192, 128}, {256, 256}}) {
      Case c = first;
      c.dim_qk = dim_qk;
      c.dim_vo = dim_vo;
      if (dim_qk == 256) c.q_heads = 2;
      list.add(c);
      c.page_size = 64;
      c.softcap = 3;
      c.lengths = {"chunk", {{100, 230}}};
      list.add(c);
    }
    if (q_dtype == DType::kBF16) {  // queries that f16 can't hold
      for (const auto& [amplitude, scale] : {std::pair{1e7F, 1e-8F}, {1e-10F, 1e9F}}) {
        Case c = first;
        c.amplitude = amplitude;
        c.softmax_scale = scale;
        c.tag = amplitude > 1 ? "large_queries" : "small_queries";
        list.add(c);
      }
    }
    for (const Scales scales : {Scales::kNone, Scales::kPerTensor, Scales::kPerSequence}) {
      Case c = first;
      c.dim_qk = c.dim_vo = 128;
      c.scales = scales;
      c.page_size = 256;
      c.mask = window(99);
      c.sinks = 0.5F;
      list.add(c);
      c.page_size = 8;
      c.num_sms = 132;  // the keys of a row tile are split
      c.tag = "sms132";
      list.add(c);
      c.kv_layout = KVLayout::kRagged;
      c.num_sms = 0;
      c.tag = {};
      c.mask = {};
      list.add(c);
      c.kv_layout = KVLayout::kDense;
      c.padding_keys = 7;
      c.is_q_ragged = false;
      c.padding_rows = 3;
      list.add(c);
    }
  }
}

// O of every dtype that is not the kernel's own: whole tiles of tokens, the end of a sequence,
// packed rows and split keys; rows of O that are aligned to a vector, to a pair and to neither.
void add_output_types(CaseList& list) {
  for (const DType q_dtype : {DType::kF32, DType::kBF16, DType::kF16, DType::kF8E4M3}) {
    const DType own = q_dtype == DType::kF8E4M3 ? DType::kBF16 : q_dtype;
    for (const DType out : {DType::kF32, DType::kBF16, DType::kF16, DType::kF8E4M3}) {
      if (out == own) continue;
      Case c = typed(q_dtype);
      c.out = out;
      if (out == DType::kF8E4M3) c.out_scale = 0.02F;
      c.q_heads = 4;
      c.lengths = {"outs", {{150, 150}, {1, 300}, {20, 33}, {3, 0}}};
      list.add(c);
      c.q_heads = 2;  // several whole work tiles of short rows for a CTA
      c.lengths = mixed_lengths();
      list.add(c);
      c.q_heads = 4;
      c.dim_qk = c.dim_vo = 104;
      c.outputs_have_gaps = true;
      c.sinks = 0.5F;
      c.lengths = {"splits", {{1, 2500}, {2, 1300}}};
      list.add(c);
      c.is_q_ragged = false;
      c.padding_rows = 3;
      c.dim_qk = c.dim_vo = 256;
      c.has_alibi = true;
      c.lengths = {"outs", {{70, 90}, {5, 200}}};
      list.add(c);
    }
  }
}

// Lengths around the tiles of the GPU kernels: keys around multiples of 128 and 192, rows around
// halves of 128 (two heads per token); windows that leave some rows, or every other tile, without
// visible keys.
void add_tile_edges(CaseList& list) {
  const NamedLengths keys{"keyedges",
                          {{1, 127}, {1, 128}, {1, 129}, {1, 191}, {1, 192}, {1, 193}, {2, 257}}};
  const NamedLengths rows{"rowedges", {{63, 200}, {64, 130}, {65, 129}, {129, 129}}};
  for (const int32_t dim : {64, 128}) {
    Case c = typed(DType::kBF16);
    c.dim_qk = c.dim_vo = dim;
    c.lengths = keys;
    list.add(c);
    c.sinks = 0.5F;
    c.mask = window(130);
    list.add(c);
    c.sinks.reset();
    c.lengths = rows;
    list.add(c);
    c.mask = window(3);
    c.page_size = 64;
    list.add(c);
  }
  // Rows around the 256 of a product of a CTA pair, and around its tiles of two products.
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF8E4M3}) {
    Case c = typed(dtype);
    c.dim_qk = c.dim_vo = 128;
    c.lengths = {"pairedges", {{127, 127}, {129, 300}, {256, 256}, {257, 100}}};
    c.page_size = 64;
    list.add(c);
    c.sinks = 0.5F;
    c.mask = window(70);
    c.kv_layout = KVLayout::kRagged;
    list.add(c);
  }
  // Work tiles without valid query rows next to others over the same keys; a CTA begins with one.
  Case c = typed(DType::kBF16);
  c.kv_heads = 2;
  c.q_heads = 8;
  c.is_q_ragged = false;
  c.padding_rows = 46;
  c.lengths = {"paddingunits", {{2, 40}, {1, 50}}};
  list.add(c);
}

void add_empty(CaseList& list) {
  const NamedLengths kLengths[] = {{"emptyfirst", {{0, 0}, {3, 10}}},
                                   {"emptylast", {{3, 10}, {0, 0}}},
                                   {"emptybetween", {{2, 5}, {0, 7}, {0, 0}, {1, 3}, {0, 1}}},
                                   {"zerokeys", {{4, 0}, {1, 0}, {2, 6}}},
                                   {"onlyzerokeys", {{1, 0}, {3, 0}}},
                                   {"noqueries", {{0, 4}, {0, 0}}},
                                   {"morequeries", {{40, 3}, {70, 1}, {33, 32}}},
                                   {"single", {{1, 1}}}};
  for (const NamedLengths& lengths : kLengths) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      Case c = typed(dtype);
      c.lengths = lengths;
      list.add(c);
      c.sinks = 0.0F;
      c.kv_layout = KVLayout::kCsr;
      list.add(c);
      if (lengths.name == "noqueries" || lengths.name == "onlyzerokeys") continue;
      c.kv_layout = KVLayout::kRagged;
      c.is_q_ragged = false;
      c.padding_rows = 1;
      list.add(c);
    }
  }
}

void add_numerics(CaseList& list) {
  struct Numbers {
    const char* name;
    float amplitude;
    std::optional<float> scale;
  };
  const Numbers kNumbers[] = {{"scores1e4", 1e4F, {}}, {"scores1e3", 1e3F, {}}, {"tiny", 1e-4F, {}},
                              {"scale1", 1, 1.0F},     {"scale1e-6", 1, 1e-6F}, {"scale4", 1, 4.0F},
                              {"scale1e-3", 1, 1e-3F}, {"scale30", 1, 30.0F}};
  for (const Numbers& numbers : kNumbers) {
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      Case c = typed(dtype);
      c.amplitude = numbers.amplitude;
      c.softmax_scale = numbers.scale;
      c.tag = numbers.name;
      c.lengths = {"mixed", {{1, 70}, {20, 40}}};
      list.add(c);
    }
  }
}

// Scores that leap from one tile of keys to the next, as those of attention sinks do: by more than
// P in f16 holds, and by more than fp32 holds. Without row maxima.
void add_leaps(CaseList& list) {
  struct Types {
    DType q, kv;
    // For the largest leaps. Hopper sums e4m3 products with 14 bits. Over an fp8 cache P is f16,
    // whose smallest number is not small enough beside a V that has zeros.
    std::optional<float> largest;
  };
  const Types kTypes[] = {{DType::kBF16, DType::kBF16, 400},
                          {DType::kF16, DType::kF16, 400},
                          {DType::kF8E4M3, DType::kF8E4M3, 200},
                          {DType::kBF16, DType::kF8E4M3, {}}};
  for (const Types& types : kTypes) {
    for (const int32_t dim : {64, 96, 128, 256}) {
      const bool is_rare = dim == 96 || dim == 256;
      if (is_rare && types.kv != DType::kBF16) continue;
      for (const bool is_large : {false, true}) {
        if (is_large ? !types.largest : is_rare) continue;
        const float amplitude = is_large ? *types.largest : 10;
        Case c = typed(types.q);
        c.kv_dtype = types.kv;
        c.dim_qk = c.dim_vo = dim;
        if (dim == 128) c.mask = {};
        c.amplitude = amplitude;
        c.wants_row_max = false;
        c.lengths = {"long", {{80, 450}, {66, 300}}};
        c.tag = "leaps" + std::to_string(static_cast<int>(amplitude));
        list.add(c);
      }
    }
  }
}

namespace {
// Several tiles of queries and of keys, and intervals that begin and end inside them.
void add_long_prefill(CaseList& list) {
  const NamedMask kMasks[] = {
      causal(),
      window(99),
      {"windowboth", [](MaskMaterial&) { return Mask::window(70, 33); }},
      {"bits_window", [](MaskMaterial& m) { return m.bits(0, 0.5) & Mask::window(77, 5); }},
      {"chunked100_causal", [](MaskMaterial&) { return Mask::chunked(100) & Mask::causal(); }},
      {"functor_causal", [](MaskMaterial& m) { return m.functor() & Mask::causal(); }},
      {"bits", [](MaskMaterial& m) { return m.bits(2, 0.2); }}};
  for (const NamedMask& mask : kMasks) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      Case c = typed(dtype);
      c.q_heads = 3;
      c.dim_qk = c.dim_vo = 24;
      c.mask = mask;
      c.lengths = {"prefill611", {{611, 611}, {5, 5}}};
      list.add(c);
    }
  }
}
// Grids of real GPUs: one multiprocessor more than the default, an H100's and a B200's. A chunk
// whose keys are split over multiprocessors that would idle; decode with a stream-K partition over
// all of them.
void add_num_sms(CaseList& list) {
  for (const int32_t num_sms : {4, 132, 148}) {
    Case c = typed(DType::kBF16);
    c.page_size = 64;
    c.num_sms = num_sms;
    c.tag = "sms" + std::to_string(num_sms);
    c.lengths = {"chunk1500", {{150, 1500}, {70, 90}}};
    list.add(c);
    c.q_heads = 8;
    c.kv_heads = 2;
    c.lengths = {"decode2000", {{1, 2000}, {2, 700}, {1, 0}, {1, 1}}};
    list.add(c);
  }
}

}  // namespace

// Every schedule and number of KV splits: prefill, decode and both in one batch, more tiles than
// CTAs, keys that are not visible to the first splits, sequences without keys.
void add_schedules(CaseList& list) {
  struct Choice {
    const char* name;
    Schedule schedule;
    int32_t num_kv_splits;
  };
  const Choice kChoices[] = {{"transient", Schedule::kTransient, 0},
                             {"persistent", Schedule::kPersistent, 0},
                             {"queue", Schedule::kQueue, 0},
                             {"streamk", Schedule::kStreamK, 0},
                             {"nosplits", Schedule::kAutomatic, 1},
                             {"streamk_nosplits", Schedule::kStreamK, 1},
                             {"splits3", Schedule::kAutomatic, 3},
                             {"queue_splits2", Schedule::kQueue, 2},
                             {"transient_splits5", Schedule::kTransient, 5}};
  for (const Choice& choice : kChoices) {
    Case c = typed(DType::kBF16);
    c.schedule = choice.schedule;
    c.num_kv_splits = choice.num_kv_splits;
    c.tag = choice.name;
    c.page_size = 64;
    c.q_heads = 4;
    c.lengths = {"scheduled", {{150, 400}, {1, 900}, {5, 70}, {2, 0}}};
    list.add(c);
    c.mask = window(200);
    c.q_dtype = c.kv_dtype = DType::kF16;
    c.dim_qk = c.dim_vo = 128;
    c.lengths = {"scheduled", {{40, 700}, {1, 300}, {0, 5}}};
    list.add(c);
    c.mask = causal();
    c.dim_qk = c.dim_vo = 256;
    c.lengths = {"scheduled", {{70, 90}, {1, 200}}};
    list.add(c);
  }
  // One launch by tiles, without splits: it writes the rows of a sequence that has padding rows
  // alone, too.
  for (const Choice& choice : {Choice{"transient_nosplits", Schedule::kTransient, 1},
                               Choice{"persistent_nosplits", Schedule::kPersistent, 1},
                               Choice{"queue_nosplits", Schedule::kQueue, 1}}) {
    Case c = typed(DType::kBF16);
    c.schedule = choice.schedule;
    c.num_kv_splits = choice.num_kv_splits;
    c.tag = std::string("paddingalone_") + choice.name;
    c.is_q_ragged = false;
    c.lengths = {"scheduled", {{100, 200}, {0, 50}, {30, 60}}};
    list.add(c);
  }
}

void add_long(CaseList& list) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    Case c = typed(dtype);
    c.q_heads = 8;
    c.page_size = 64;
    c.lengths = {"decode9001", {{1, 9001}}};
    list.add(c);
    c.q_heads = 4;
    c.kv_heads = 2;
    c.page_size = 16;
    c.sinks = 2.0F;
    c.lengths = {"decode5000", {{1, 5000}, {1, 30}, {1, 4097}}};
    list.add(c);
    c.mask = window(1023);
    c.softcap = 30;
    list.add(c);
    c = typed(dtype);
    c.dim_qk = c.dim_vo = 32;
    c.page_size = 128;
    c.lengths = {"chunk2100", {{24, 2100}, {1, 3000}}};
    list.add(c);
    c.mask = {"tree", [](MaskMaterial& m) { return m.tree(); }};
    c.lengths = {"tree1500", {{13, 1500}}};
    list.add(c);
    // Masks that are not intervals, split.
    c.lengths = {"decode3000", {{2, 3000}, {1, 5}}};
    c.mask = {"additive4", [](MaskMaterial& m) { return m.additive(4, false, false); }};
    list.add(c);
    c.mask = {"window_or_prefix", [](MaskMaterial& m) {
                return Mask::causal() & (Mask::window(300, 0) | m.bits(10, 0));
              }};
    list.add(c);
    c.mask = {"relative300_causal",
              [](MaskMaterial& m) { return Mask::causal() & m.relative_bias(300); }};
    c.sinks = -1.0F;
    list.add(c);
  }
  // KV splits that are visible to the first or the last rows only.
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    Case c = typed(dtype);
    c.q_heads = 1;
    c.dim_qk = c.dim_vo = 32;
    c.mask = {"chunked2304_causal",
              [](MaskMaterial&) { return Mask::chunked(2304) & Mask::causal(); }};
    c.lengths = {"chunk2450", {{250, 2450}}};
    list.add(c);
  }
  add_long_prefill(list);
  add_num_sms(list);
}

// Elements beyond 2^31, some beyond 2^32: 32-bit offsets overflow here.
void add_huge_offsets(CaseList& list) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    Case c = typed(dtype);
    c.lengths = {"mixed", {{1, 50}, {6, 20}}};
    c.page_id_step = 500'000;  // * 16 * 64 elements
    c.tag = "hugepageids";
    list.add(c);
    c.page_layout = PageLayout::kHND;
    c.storage = KVStorage::kInterleaved;
    list.add(c);
    c.page_id_step = 1;
    c.outer_gap = (int64_t{1} << 28) + 3;
    c.tag = "hugepagestride";
    list.add(c);
    c.storage = KVStorage::kSeparate;
    c.page_layout = PageLayout::kNHD;
    c.outer_gap = 0;
    c.middle_gap = (int64_t{1} << 25) + 1;  // between the rows of a page
    c.is_q_ragged = false;
    c.lengths = {"decode", {{1, 40}}};
    c.tag = "hugerowstride";
    list.add(c);
    c = typed(dtype);
    c.kv_layout = KVLayout::kDense;
    c.outer_gap = (int64_t{1} << 30) + 5;
    c.lengths = {"mixed", {{1, 20}, {7, 7}, {2, 9}, {1, 3}, {3, 40}}};
    c.tag = "hugesequencestride";
    list.add(c);
    c.is_q_ragged = false;
    list.add(c);
  }
}

void add_repeats(CaseList& list) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    Case c = typed(dtype);
    c.demand = Demand::kRepeats;
    c.q_heads = 4;
    c.kv_heads = 2;
    c.tag = "repeat16";
    c.lengths = mixed_lengths();
    list.add(c);
    c.lengths = {"decode3000", {{1, 3000}, {1, 10}}};  // split
    list.add(c);
  }
}

void add_batch_invariance(CaseList& list) {
  const NamedLengths lengths{"mixed", {{1, 600}, {20, 20}, {9, 300}, {1, 2500}, {0, 4}}};
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    Case c = typed(dtype);
    c.demand = Demand::kBatchInvariant;
    c.q_heads = 4;
    c.kv_heads = 2;
    c.dim_qk = c.dim_vo = 32;
    c.tag = "invariant";
    c.lengths = lengths;
    list.add(c);
    c.page_size = 64;
    c.mask = window(99);
    c.sinks = 1.0F;
    list.add(c);
    c.sinks.reset();
    c.mask = {"tree", [](MaskMaterial& m) { return m.tree(); }};
    list.add(c);
    c.mask = causal();
    c.kv_layout = KVLayout::kRagged;
    c.is_q_ragged = false;
    list.add(c);
    // Alone the sequences take other kernels than rows padded to the longest would.
    c.lengths = {"rows64", {{20, 300}, {70, 90}, {64, 64}, {3, 3}}};
    list.add(c);
    c.kv_layout = KVLayout::kBlockTable;
    c.q_heads = 2;
    c.dim_qk = c.dim_vo = 16;
    c.lengths = {"decode9000", {{1, 9000}, {3, 5000}, {1, 4096}, {1, 4097}}};
    list.add(c);
  }
  // Alone decoding has up to 16 rows of a KV head, beside other sequences more.
  Case c = typed(DType::kBF16);
  c.kv_dtype = DType::kF8E4M3;
  c.demand = Demand::kBatchInvariant;
  c.q_heads = 12;
  c.page_size = 64;
  c.lengths = {"decode", {{1, 136}, {2, 300}, {1, 1}, {70, 90}}};
  c.tag = "invariant";
  list.add(c);
}

}  // namespace pagoda::conformance
