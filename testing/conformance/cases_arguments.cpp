// Cases about arguments beside the shapes: used lengths of ragged tensors, queries that outnumber
// their keys, the order and the base of LSEs, scales.
#include "testing/conformance/case_list.hpp"
#include "testing/conformance/mask_material.hpp"

namespace pagoda::conformance {
namespace {

Case causal(DType dtype) {
  Case c;
  c.q_dtype = c.kv_dtype = dtype;
  c.mask = {"causal", [](MaskMaterial&) { return Mask::causal(); }};
  return c;
}

}  // namespace

// Unused rows and keys hold NaN. The last batch has more queries than keys, and says so.
void add_used_lengths(CaseList& list) {
  const NamedLengths lengths{"used", {{1, 100}, {33, 40}, {0, 17}, {70, 70}, {5, 0}}};
  const NamedLengths negative{"negative", {{9, 4, -5}, {3, 20, 17}, {70, 1, -70}}};
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    Case c = causal(dtype);
    c.kv_layout = KVLayout::kRagged;
    c.lengths = lengths;
    c.padding_rows = 3;
    c.tag = "usedq";
    list.add(c);
    c.padding_keys = 7;
    c.sinks = 0.5F;
    c.tag = "usedqk";
    list.add(c);
    c.padding_rows = 0;
    c.tag = "usedk";
    list.add(c);
    Case queries = causal(dtype);
    queries.lengths = negative;
    list.add(queries);
    queries.kv_layout = KVLayout::kDense;
    queries.is_q_ragged = false;
    list.add(queries);
  }
}

void add_statistics(CaseList& list) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    for (const bool is_ragged : {true, false}) {
      Case c = causal(dtype);
      c.is_q_ragged = is_ragged;
      c.q_heads = 6;
      c.kv_heads = 3;
      c.lengths = mixed_lengths();
      c.has_heads_first = true;
      c.tag = "headsfirst";
      list.add(c);
      c.lse_base = LogBase::k2;
      c.outputs_have_gaps = true;
      c.tag = "headsfirst_log2";
      list.add(c);
    }
  }
}

void add_scales(CaseList& list) {
  Case c = causal(DType::kBF16);
  c.lengths = mixed_lengths();
  c.kv_heads = 2;
  c.q_heads = 4;
  for (const Scales scales : {Scales::kPerTensor, Scales::kPerHead}) {
    c.scales = scales;
    list.add(c);
  }
  c.scales = Scales::kPerSequence;
  list.add(c);
  c.softcap = 5;
  list.add(c);
  c.softcap = 0;
  c.lengths = {"prefill", {{70, 70}, {129, 200}}};  // row tiles of tokens
  c.kv_layout = KVLayout::kDense;
  list.add(c);
  c.kv_layout = KVLayout::kBlockTable;
  c.lengths = mixed_lengths();
  c.kv_dtype = DType::kF8E4M3;
  for (const bool is_gathered : {false, true}) {
    c.page_size = is_gathered ? 17 : 64;
    list.add(c);
  }
  c.page_size = 16;
  c.kv_dtype = c.q_dtype;
  c.scales = Scales::kPerTensor;
  c.softcap = 5;
  list.add(c);
  c.softcap = 0;
  c.q_dtype = c.kv_dtype = DType::kF8E4M3;
  c.q_scale = 0.6F;
  c.tag = "qscale";
  list.add(c);
  c.tag = "";
  c.scales = Scales::kPerSequence;
  for (const Scales scales : {Scales::kPerHead, Scales::kPerSequence}) {
    c.q_scales = scales;
    for (const int32_t dim : {64, 192}) {
      c.dim_qk = c.dim_vo = dim;
      c.softcap = 0;
      list.add(c);
      c.softcap = 5;
      list.add(c);
    }
  }
}

// Left padding holds NaN. Every cache, masks of each kind, splits, tiles of tokens.
void add_leftpads(CaseList& list) {
  const NamedMask masks[] = {
      {"causal", [](MaskMaterial&) { return Mask::causal(); }},
      {"window9", [](MaskMaterial&) { return Mask::window(9, 3); }},
      {"chunked16", [](MaskMaterial&) { return Mask::chunked(16) & Mask::causal(); }},
      {"bits", [](MaskMaterial& m) { return m.bits(3, 0.5); }},
      {"additive", [](MaskMaterial& m) { return m.additive(4, false, false); }}};
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    Case c = causal(dtype);
    c.kv_heads = 2;
    c.q_heads = 4;
    c.lengths = mixed_lengths();
    for (const KVLayout layout :
         {KVLayout::kDense, KVLayout::kRagged, KVLayout::kBlockTable, KVLayout::kCsr}) {
      c.kv_layout = layout;
      c.leftpad = 5;
      for (const NamedMask& mask : masks) {
        c.mask = mask;
        c.has_alibi = mask.name == "causal";
        list.add(c);
      }
      c.has_alibi = false;
      c.mask = masks[0];
      c.leftpad = 64;  // whole pages, whole tiles
      list.add(c);
      c.leftpad = 3;
      c.lengths = {"prefill", {{70, 70}, {129, 300}}};
      list.add(c);
      c.lengths = {"splits", {{1, 1500}, {3, 900}}};
      list.add(c);
      c.lengths = mixed_lengths();
    }
    c.padding_keys = 7;
    c.kv_layout = KVLayout::kRagged;
    c.tag = "usedk";
    list.add(c);
  }
  Case c = causal(DType::kBF16);
  c.kv_dtype = DType::kF8E4M3;
  c.scales = Scales::kPerSequence;
  c.lengths = mixed_lengths();
  c.leftpad = 7;
  for (const KVLayout layout : {KVLayout::kDense, KVLayout::kBlockTable}) {
    c.kv_layout = layout;
    list.add(c);
  }
  c.kv_layout = KVLayout::kDense;
  c.scales = Scales::kNone;
  c.q_dtype = DType::kF8E4M3;
  for (const int32_t dim : {64, 192}) {
    c.dim_qk = c.dim_vo = dim;
    list.add(c);
  }
  c.q_dtype = c.kv_dtype = DType::kBF16;
  for (const KVLayout layout : {KVLayout::kDense, KVLayout::kRagged, KVLayout::kBlockTable}) {
    c.kv_layout = layout;
    list.add(c);
  }
  c.dim_qk = c.dim_vo = 64;
  c.lengths = {"nokeys", {{3, 0}, {2, 1}, {1, 0}, {9, 0}}};  // padding alone
  for (const KVLayout layout :
       {KVLayout::kDense, KVLayout::kRagged, KVLayout::kBlockTable, KVLayout::kCsr}) {
    c.kv_layout = layout;
    list.add(c);
  }
}

// CUDA graphs pad a batch to a fixed number of rows: those past the last sequence.
void add_zeroed_rows(CaseList& list) {
  Case c = causal(DType::kBF16);
  c.lengths = mixed_lengths();
  c.zeroed_rows = 90;
  for (const DType out : {DType::kBF16, DType::kF32, DType::kF8E4M3}) {
    c.out = out;
    list.add(c);
  }
  c.out.reset();
  c.has_heads_first = true;
  c.outputs_have_gaps = true;
  c.padding_rows = 2;
  c.tag = "gaps";
  list.add(c);
  c = causal(DType::kF32);
  c.lengths = {"decode", {{1, 300}, {1, 65}}};
  c.zeroed_rows = 3;
  c.wants_statistics = false;
  list.add(c);
}

}  // namespace pagoda::conformance
