// Decoding: one token of each sequence, which sees all its keys or the last of them. GPU kernels
// have a path of its own for it: a partition of the batch from its lengths, and loads for a few
// layouts.
#include <string>
#include <utility>
#include <vector>

#include "testing/conformance/case_list.hpp"
#include "testing/material/mask_table.hpp"

namespace pagoda::conformance {
namespace {

Case decode(int32_t dim, NamedLengths lengths) {
  Case c;
  c.q_dtype = c.kv_dtype = dim == 64 ? DType::kF16 : DType::kBF16;
  c.q_heads = 8;
  c.kv_heads = 2;
  c.dim_qk = c.dim_vo = dim;
  c.mask = {"causal", [](MaskMaterial& /*material*/) { return Mask::causal(); }};
  c.wants_statistics = false;
  c.lengths = std::move(lengths);
  return c;
}

// `count` sequences of up to 170 keys: some without keys, some without a token.
NamedLengths many(int32_t count) {
  NamedLengths lengths{"decode" + std::to_string(count) + "unequal", {}};
  for (int32_t i = 0; i < count; ++i) {
    const int32_t keys = i % 11 == 3 ? 0 : (37 * i) % 170 + 1;
    lengths.sequences.push_back({i % 7 == 5 ? 0 : 1, keys});
  }
  return lengths;
}

// `count` sequences of up to 2,200 keys and one that is twice as long: the mean is enough for two
// splits of the fewest KV tiles, and the kernel may halve what a CTA takes.
NamedLengths differing(int32_t count) {
  NamedLengths lengths{"decode" + std::to_string(count) + "differing", {}};
  for (int32_t i = 0; i + 1 < count; ++i) lengths.sequences.push_back({1, 1300 + 61 * i % 900});
  lengths.sequences.push_back({1, 4321});
  return lengths;
}

// More sequences than a warp has lanes, of about as many keys, which are too many for
// DecodeShares::kOneEach: no sequence has a second split.
NamedLengths alike() {
  NamedLengths lengths{"decode35alike", {}};
  for (int32_t i = 0; i < 35; ++i) lengths.sequences.push_back({1, 1220 + 8 * (i % 9)});
  return lengths;
}

// The same of few keys but for two sequences, which have splits.
NamedLengths two_long_ones() {
  NamedLengths lengths{"decode37twolong", {}};
  for (int32_t i = 0; i < 37; ++i) {
    lengths.sequences.push_back({1, i == 0 ? 2600 : i == 35 ? 1500 : (53 * i) % 130});
  }
  return lengths;
}

Case windowed(Case c, int32_t left) {
  c.mask = {"window" + std::to_string(left),
            [left](MaskMaterial& /*material*/) { return Mask::window(left, 0); }};
  return c;
}

// e4m3 caches under queries of all types: partitions of the batch, pages of a part of a KV tile and
// of several, scales of K and V, queries with standard deviations of 1e-4 to 30.
void add_fp8_caches(CaseList& list) {
  for (const int32_t dim : {64, 128, 256}) {
    for (const DType q_dtype : {DType::kBF16, DType::kF16, DType::kF8E4M3}) {
      Case first = decode(dim, many(33));
      first.q_dtype = q_dtype;
      first.kv_dtype = DType::kF8E4M3;
      first.tag = "fp8";
      list.add(first);
      Case c = first;
      c.lengths = {"decodeskewed", {{1, 3000}, {1, 5}, {1, 128}, {1, 129}, {1, 257}, {1, 1}}};
      c.scales = Scales::kPerHead;
      c.sinks = 0.5F;
      c.wants_statistics = true;
      for (const int32_t num_sms : {5, 132}) {
        c.num_sms = num_sms;
        c.page_size = num_sms == 5 ? 16 : 256;
        c.page_layout = num_sms == 5 ? PageLayout::kNHD : PageLayout::kHND;
        list.add(c);
      }
      c.kv_layout = KVLayout::kCsr;
      c.page_size = 32;
      c.scales = Scales::kPerTensor;
      c.amplitude = q_dtype == DType::kF8E4M3 ? 3.0F : 30.0F;
      c.q_scale = q_dtype == DType::kF8E4M3 ? 10.0F : 1.0F;
      c.lengths = {"decodetokens", {{4, 400}, {3, 4}, {1, 129}, {4, 2}, {0, 0}, {2, 700}}};
      list.add(c);
      if (q_dtype == DType::kF8E4M3) {
        c.q_scales = Scales::kPerHead;
      } else {
        c.amplitude = 1e-4F;
        c.softmax_scale = 500.0F;
      }
      c.q_heads = 14;
      c.lengths = {"decoderowtiles", {{8, 700}, {5, 64}, {1, 1}, {5, 3}, {3, 333}}};
      list.add(c);
      // A cluster, and several whose partial results are merged by counters; O of another type.
      c = first;
      c.kv_layout = KVLayout::kDense;
      c.is_q_ragged = false;
      c.padding_keys = 7;
      c.num_sms = 132;
      c.q_heads = 7;
      c.kv_heads = 1;
      c.out = DType::kF32;
      for (const int32_t keys : {1100, 6000}) {
        c.lengths = {"decodealone" + std::to_string(keys), {{1, keys}}};
        list.add(c);
      }
      c = first;
      c.num_sms = 132;
      c.kv_heads = c.q_heads = 2;
      c.scales = Scales::kPerSequence;
      if (q_dtype == DType::kF8E4M3) c.q_scales = Scales::kPerSequence;
      c.lengths = differing(2);
      list.add(c);
    }
  }
}

// Sliding windows, which begin at any key of a page and of a KV tile, or before the first one.
void add_windows(CaseList& list) {
  constexpr std::pair<int32_t, int32_t> kDims[] = {{64, 64}, {128, 128}, {256, 256},
                                                   {96, 96}, {40, 56},   {176, 160}};
  for (const auto& [dim_qk, dim_vo] : kDims) {
    // One token of many sequences; a window of 128 keys and attention sinks.
    Case c = decode(dim_qk, many(70));
    c.dim_vo = dim_vo;
    list.add(windowed(c, 63));
    c.lengths = {"decodewindow",
                 {{1, 700}, {1, 1}, {1, 128}, {1, 0}, {1, 129}, {1, 145}, {1, 1009}}};
    c.q_heads = 16;
    c.sinks = 0.5F;
    c.wants_statistics = true;
    for (const int32_t left : {0, 1, 127}) list.add(windowed(c, left));
    // Windows that several CTAs share, in clusters and by counters.
    c.lengths = {"decodewindowalone", {{1, 3000}}};
    c.page_size = 256;
    c.page_layout = PageLayout::kHND;
    c.num_sms = 132;
    list.add(windowed(c, 1023));
    c.sinks = {};
    c.wants_statistics = false;
    c.num_sms = 5;
    list.add(windowed(c, 2047));
    // Several tokens, in one row tile of a KV head and in two, and more tokens than keys.
    c.page_size = 16;
    c.q_heads = 8;
    c.kv_layout = KVLayout::kCsr;
    c.lengths = {"decodewindowtokens", {{4, 400}, {3, 4}, {1, 129}, {4, 2}, {0, 0}}};
    list.add(windowed(c, 99));
    c.num_sms = 132;
    c.lengths = {"decodewindowrowtiles", {{8, 700}, {5, 64}, {1, 1}, {5, 3}, {3, 333}}};
    list.add(windowed(c, 99));
    // Dense; a window that also sees the keys of later tokens.
    c.kv_layout = KVLayout::kDense;
    c.is_q_ragged = false;
    c.padding_keys = 7;
    c.lengths = {"decodewindowdense", {{2, 500}, {2, 130}, {2, 66}}};
    c.mask = {"window40_1", [](MaskMaterial& /*material*/) { return Mask::window(40, 1); }};
    list.add(c);
  }
}

}  // namespace

void add_decode(CaseList& list) {
  add_windows(list);
  add_fp8_caches(list);
  for (const int32_t dim : {64, 128, 256}) {
    // More sequences than a warp has lanes, and more than two of each lane.
    for (const int32_t count : {31, 33, 70}) list.add(decode(dim, many(count)));
    // One sequence far longer than the others, in pages of several tiles; rows for statistics.
    Case c = decode(dim, {"decodeskewed", {{1, 3000}, {1, 5}, {1, 64}, {1, 129}, {1, 1}}});
    c.page_size = 256;
    c.page_layout = PageLayout::kHND;
    c.sinks = 0.5F;
    c.wants_statistics = true;
    list.add(c);
    c.page_size = 32;
    c.q_heads = 16;
    c.kv_heads = 1;
    c.out = DType::kF32;
    list.add(c);
    // Pages that are no power of two, or smaller than what a thread copies at once.
    for (const int32_t page_size : {8, 48}) {
      c = decode(dim, {"decodepages", {{1, 500}, {1, 47}}});
      c.page_size = page_size;
      list.add(c);
    }
    // More row tiles than CTAs fit one and 132 multiprocessors, on which they have two waves.
    c = decode(dim, differing(dim == 64 ? 4 : 3));
    c.num_sms = 1;
    list.add(c);
    c = decode(dim, differing(dim == 64 ? 128 : 64));
    c.kv_heads = 8;
    c.num_sms = 132;
    list.add(c);
    for (const NamedLengths& lengths : {alike(), two_long_ones()}) {
      c = decode(dim, lengths);
      c.q_heads = 4;
      c.kv_heads = 1;
      c.num_sms = 1;
      list.add(c);
      c.kv_layout = KVLayout::kCsr;
      list.add(c);
    }
    // Dense, with and without lengths; groups of one head and of seven.
    c = decode(dim, {"decodedense", {{1, 500}, {1, 64}, {1, 0}, {1, 333}}});
    c.kv_layout = KVLayout::kDense;
    c.is_q_ragged = false;
    c.padding_keys = 7;
    list.add(c);
    c.q_heads = 7;
    c.kv_heads = 1;
    c.lengths = {"decodealone", {{1, 1100}}};
    list.add(c);
    Case converted =
        decode(dim, {"decodesplit", {{1, 662}, {1, 126}, {1, 512}, {1, 13}, {1, 900}}});
    converted.q_heads = 7;  // an odd number of split rows, merged two at a time
    converted.kv_heads = 1;
    converted.out = DType::kF32;
    converted.num_sms = 5;
    list.add(converted);
    c.q_heads = c.kv_heads = 3;
    c.is_q_ragged = true;
    list.add(c);
  }
  // Head dims below the padded ones 64, 128 and 256, of K and V alike or not.
  constexpr std::pair<int32_t, int32_t> kNarrow[] = {{8, 8},     {56, 64},   {72, 72},  {80, 80},
                                                     {96, 96},   {112, 40},  {64, 120}, {120, 128},
                                                     {136, 136}, {192, 192}, {248, 96}, {160, 256}};
  for (const auto& [dim_qk, dim_vo] : kNarrow) {
    Case c = decode(dim_qk, {"decodenarrow", {{1, 700}, {1, 1}, {1, 64}, {1, 0}, {1, 333}}});
    c.dim_vo = dim_vo;
    c.num_sms = 132;
    list.add(c);
    c.kv_layout = KVLayout::kDense;
    c.is_q_ragged = false;
    c.padding_keys = 7;
    c.out = DType::kF32;
    c.lengths = {"decodenarrowalone", {{1, 1100}}};
    list.add(c);
    // Merges by counters, of more splits than two.
    c.kv_layout = KVLayout::kCsr;
    c.padding_keys = 0;
    c.out = {};
    c.wants_statistics = true;
    c.kv_heads = 1;
    c.num_sms = 5;
    c.lengths = {"decodenarrowsplit", {{1, 662}, {1, 126}, {1, 900}}};
    list.add(c);
    c.q_heads = 4;
    c.kv_heads = 2;
    c.num_sms = 132;
    c.lengths = {"decodenarrowtokens", {{4, 400}, {4, 4}, {4, 129}}};
    list.add(c);
  }
  // Several row tiles of a KV head: two of four tokens, of which some sequences have one or none;
  // four of two tokens, in clusters and by counters; three of a token. More tokens than keys.
  constexpr std::pair<int32_t, int32_t> kDims[] = {{64, 64}, {128, 128}, {96, 96},
                                                   {40, 56}, {256, 256}, {176, 176}};
  for (const auto& [dim_qk, dim_vo] : kDims) {
    Case c =
        decode(dim_qk, {"decoderowtiles", {{8, 700}, {5, 64}, {1, 1}, {0, 0}, {5, 3}, {3, 333}}});
    c.dim_vo = dim_vo;
    c.wants_statistics = true;
    c.num_sms = 132;
    list.add(c);
    c.kv_heads = 1;
    c.wants_statistics = false;
    c.lengths = {"decoderowtilesalone", {{8, 1100}}};
    list.add(c);
    c.kv_layout = KVLayout::kDense;
    c.is_q_ragged = false;
    c.padding_keys = 7;
    c.num_sms = 5;
    c.lengths = {"decoderowtilessplit", {{7, 662}, {7, 130}, {7, 900}}};
    list.add(c);
    c.kv_layout = KVLayout::kCsr;
    c.padding_keys = 0;
    c.is_q_ragged = true;
    c.q_heads = 16;
    c.out = DType::kF32;
    c.lengths = {"decoderowtilesofone", {{3, 400}, {2, 129}, {3, 64}}};
    list.add(c);
  }
}

}  // namespace pagoda::conformance
