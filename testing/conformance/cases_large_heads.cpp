// Cases of head dims above 128, which GPUs serve by kernels of their own: tiles of 128 keys and 64
// or 128 query rows a CTA to 256, of 256 keys and 64 rows to 512, in pairs of CTAs.
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

}  // namespace

void add_large_heads(CaseList& list) {
  for (const int32_t dim : {256, 512}) {
    add_edges(list, dim);
    add_scores(list, dim);
    add_calls(list, dim);
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
