// Cases of head dims above 128, which GPUs serve by kernels of their own: tiles of 128 keys and 64
// or 128 query rows a CTA to 256, of 256 keys and 64 rows to 512, in pairs of CTAs.
#include <string>
#include <utility>

#include "testing/conformance/case_list.hpp"
#include "testing/conformance/mask_material.hpp"

namespace pagoda::conformance {
namespace {

using M = MaskMaterial;

Case large(int32_t dim, DType dtype = DType::kBF16) {
  Case c;
  c.q_dtype = c.kv_dtype = dtype;
  c.dim_qk = c.dim_vo = dim;
  c.mask = {"causal", [](M&) { return Mask::causal(); }};
  return c;
}

// Numbers of keys around multiples of the tile, of rows around multiples of a CTA's block (two
// heads per token); windows that leave the rows of one CTA of a pair, or whole tiles, without
// visible keys.
void add_edges(CaseList& list, int32_t dim) {
  Case c = large(dim);
  c.lengths = {"keyedges", {{1, 128}, {1, 129}, {2, 257}}};
  list.add(c);
  c.sinks = 0.5F;
  c.mask = {"window131", [](M&) { return Mask::window(130, 0); }};
  list.add(c);
  c.sinks.reset();
  c.lengths = {"rowedges", {{33, 200}, {65, 129}}};
  c.kv_layout = KVLayout::kRagged;
  list.add(c);
  c.mask = {"window4", [](M&) { return Mask::window(3, 0); }};
  c.kv_layout = KVLayout::kBlockTable;
  c.page_size = 64;
  list.add(c);
  c.mask = {"chunked64_causal", [](M&) { return Mask::chunked(64) & Mask::causal(); }};
  c.kv_layout = KVLayout::kCsr;
  c.page_size = 32;
  c.page_layout = PageLayout::kHND;
  c.storage = KVStorage::kInterleaved;
  list.add(c);
}

void add_scores(CaseList& list, int32_t dim) {
  Case c = large(dim, DType::kF16);
  c.lengths = {"chunk", {{5, 150}, {34, 34}}};
  c.q_heads = 3;
  c.softcap = 5;
  c.has_alibi = true;
  list.add(c);
  c.softcap = 0;
  c.has_alibi = false;
  c.q_heads = 4;
  c.kv_heads = 2;
  c.mask = {"additive4", [](M& m) { return m.additive(4, false, false); }};
  list.add(c);
  c.mask = {"window_or_prefix",
            [](M& m) { return Mask::causal() & (Mask::window(6, 0) | m.bits(10, 0)); }};
  c.sinks = -0.5F;
  list.add(c);
}

void add_calls(CaseList& list, int32_t dim) {
  Case c = large(dim);
  c.lengths = {"decode", {{1, 300}, {1, 1}, {1, 70}}};
  c.q_heads = 8;
  c.page_size = 128;
  list.add(c);
  c = large(dim);
  c.lengths = {"cached", {{7, 60, 30}, {3, 20, 0}, {2, 9, 9}}};
  c.mask = {"windowboth", [](M&) { return Mask::window(11, 5); }};
  list.add(c);
  c = large(dim);
  c.kv_layout = KVLayout::kDense;
  c.is_q_ragged = false;
  c.padding_rows = 3;
  c.padding_keys = 2;
  c.mask = {};
  c.lengths = {"crossedges", {{20, 45}, {70, 140}, {0, 4}, {5, 0}}};
  list.add(c);
}

// Keys that several CTA pairs share: a stream-K partition of decode, KV splits of a chunk of
// queries, both in one batch. 148: the multiprocessors of a B200.
void add_splits(CaseList& list, int32_t dim) {
  const bool is_512 = dim == 512;  // fewer keys: a tile of 256 x 512 takes longer to emulate
  for (const int32_t num_sms : {0, 148}) {
    Case c = large(dim);
    c.page_size = 64;
    c.num_sms = num_sms;
    if (num_sms != 0) c.tag = "sms" + std::to_string(num_sms);
    c.q_heads = 8;
    c.kv_heads = is_512 ? 1 : 2;
    c.lengths = {"decode1500", {{1, 1500}, {2, 700}, {1, 0}, {1, 1}}};
    if (is_512) c.lengths = {"decode700", {{1, 700}, {2, 200}, {1, 0}}};
    list.add(c);
    c.q_heads = 3;  // rows of both CTAs, and of the first one alone
    c.kv_heads = 1;
    c.sinks = 0.5F;
    c.lengths = {"chunk700", {{70, 700}, {1, 900}, {5, 3}}};
    if (is_512) c.lengths = {"chunk300", {{70, 200}, {1, 500}, {5, 3}}};
    list.add(c);
  }
  struct Choice {
    const char* name;
    Schedule schedule;
    int32_t num_kv_splits;
  };
  for (const Choice& choice :
       {Choice{"streamk", Schedule::kStreamK, 0}, Choice{"streamk_nosplits", Schedule::kStreamK, 1},
        Choice{"persistent_splits3", Schedule::kPersistent, 3},
        Choice{"queue", Schedule::kQueue, 0},
        Choice{"transient_splits2", Schedule::kTransient, 2}}) {
    Case c = large(dim, DType::kF16);
    c.schedule = choice.schedule;
    c.num_kv_splits = choice.num_kv_splits;
    c.tag = choice.name;
    c.mask = {"window500", [](M&) { return Mask::window(499, 0); }};
    c.lengths = {"scheduled", {{40, 1100}, {70, 300}, {2, 0}}};
    if (is_512) c.lengths.sequences = {{20, 1100}, {66, 100}, {2, 0}};
    list.add(c);
  }
  // O of other types, by the merge of split rows.
  for (const DType out : {DType::kF32, DType::kF16, DType::kF8E4M3}) {
    Case c = large(dim);
    c.dim_vo = dim - 40;
    c.out = out;
    if (out == DType::kF8E4M3) c.out_scale = 0.02F;
    c.has_alibi = true;
    c.lengths = {"splits", {{3, 900}}};
    list.add(c);
  }
  Case c = large(dim, DType::kF8E4M3);
  c.lengths = {"splits", {{3, 1300}, {1, 200}}};
  list.add(c);
}

// K and V that TMA can't load: small pages, strides and left padding at which it has no box, and
// e4m3 caches under 16-bit queries.
void add_gathered(CaseList& list, int32_t dim) {
  Case c = large(dim);
  c.lengths = {"mixed", {{33, 200}, {1, 140}, {2, 300}}};
  for (const int32_t page_size : {1, 8, 17}) {
    c.page_size = page_size;
    list.add(c);
  }
  c.page_size = 16;
  c.leftpad = 3;
  list.add(c);
  c.leftpad = 0;
  c.kv_layout = KVLayout::kDense;
  c.outer_gap = 5;  // rows that do not start at a multiple of 16 bytes
  c.dim_vo = dim - 48;
  c.mask = {"window70", [](M&) { return Mask::window(69, 0); }};
  list.add(c);

  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    c = large(dim, dtype);
    c.kv_dtype = DType::kF8E4M3;
    c.page_size = 64;
    c.scales = Scales::kPerHead;
    c.lengths = {"mixed", {{33, 200}, {1, 140}, {2, 300}}};
    list.add(c);
    c.dim_qk = dim - 56;
    c.dim_vo = dim - 72;
    c.sinks = 0.5F;
    c.has_alibi = true;
    list.add(c);
  }
  // Gathered keys that CTA pairs share, at a B200's number of multiprocessors.
  c = large(dim);
  c.kv_dtype = DType::kF8E4M3;
  c.page_size = 5;
  c.num_sms = 148;
  c.tag = "sms148";
  c.lengths = {"decode700", {{1, 700}, {2, 200}, {1, 0}}};
  list.add(c);

  c = large(dim, DType::kF8E4M3);
  c.page_size = 8;
  c.lengths = {"mixed", {{33, 200}, {1, 140}, {2, 900}}};
  list.add(c);
}

// O of e4m3 queries in every type.
void add_fp8_outputs(CaseList& list, int32_t dim) {
  for (const DType out : {DType::kF32, DType::kF16, DType::kF8E4M3}) {
    Case c = large(dim, DType::kF8E4M3);
    c.out = out;
    if (out == DType::kF8E4M3) c.out_scale = 0.02F;
    c.scales = Scales::kPerTensor;
    c.lengths = {"mixed", {{70, 200}, {1, 140}}};
    list.add(c);
  }
}

}  // namespace

void add_large_heads(CaseList& list) {
  for (const int32_t dim : {256, 512}) {
    add_edges(list, dim);
    add_scores(list, dim);
    add_calls(list, dim);
    add_splits(list, dim);
    add_gathered(list, dim);
    add_fp8_outputs(list, dim);
  }
  for (const int32_t dim : {256, 512}) {
    Case c = large(dim, DType::kF8E4M3);
    c.scales = Scales::kPerHead;
    c.lengths = {"mixed", {{33, 200}, {1, 140}}};
    list.add(c);
    c.mask = {"bits_window", [](M& m) { return m.bits(0, 0.4) & Mask::window(45, 3); }};
    c.scales = Scales::kNone;
    c.sinks = 0.5F;
    c.kv_layout = KVLayout::kDense;
    list.add(c);
  }
  // Head dims below the instance's: unused parts of K and columns of O.
  constexpr std::pair<int32_t, int32_t> kDims[] = {{136, 136}, {200, 56},  {72, 248},
                                                   {320, 328}, {264, 160}, {96, 448}};
  for (const auto& [qk, vo] : kDims) {
    Case c = large(qk);
    c.dim_vo = vo;
    c.lengths = {"mixed", {{33, 50}, {1, 140}}};
    list.add(c);
  }
}

}  // namespace pagoda::conformance
