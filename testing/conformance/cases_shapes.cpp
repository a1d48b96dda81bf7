// Cases that vary shapes and memory: head dimensions, groups, pages, layouts, lengths.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "testing/conformance/case_list.hpp"
#include "testing/conformance/mask_material.hpp"

namespace pagoda::conformance {
namespace {

constexpr std::array kTypes = {
    std::pair{DType::kF32, DType::kF32}, std::pair{DType::kBF16, DType::kBF16},
    std::pair{DType::kF16, DType::kF16}, std::pair{DType::kBF16, DType::kF8E4M3}};

Case with_types(std::pair<DType, DType> types) {
  Case c;
  c.q_dtype = types.first;
  c.kv_dtype = types.second;
  return c;
}

}  // namespace

void add_dims(CaseList& list) {
  constexpr std::pair<int32_t, int32_t> kDims[] = {
      {8, 8},     {16, 16},   {40, 40},   {64, 64},   {72, 72},   {80, 80},  {96, 96},
      {128, 128}, {192, 128}, {256, 256}, {512, 512}, {576, 512}, {104, 56}, {64, 128}};
  for (const auto& [qk, vo] : kDims) {
    for (const auto& types : kTypes) {
      Case c = with_types(types);
      c.dim_qk = qk;
      c.dim_vo = vo;
      c.mask = causal();
      c.lengths = {"mixed", {{1, 33}, {18, 18}, {5, 50}, {1, 80}}};
      c.storage = qk == 576 ? KVStorage::kVInsideK : KVStorage::kSeparate;
      list.add(c);
      if (types.second == DType::kF8E4M3) continue;
      c.storage = KVStorage::kSeparate;
      c.kv_layout = KVLayout::kDense;
      c.padding_keys = 3;
      c.is_q_ragged = false;
      c.mask = {};
      c.lengths = {"cross", {{20, 45}, {33, 31}}};
      list.add(c);
    }
  }
}

void add_groups(CaseList& list) {
  constexpr std::pair<int32_t, int32_t> kHeads[] = {{3, 3}, {4, 2},  {3, 1},  {10, 2}, {7, 1},
                                                    {8, 1}, {16, 1}, {32, 2}, {71, 1}, {602, 2}};
  for (const auto& [q_heads, kv_heads] : kHeads) {
    for (const auto& types : kTypes) {
      Case c = with_types(types);
      c.q_heads = q_heads;
      c.kv_heads = kv_heads;
      c.dim_qk = c.dim_vo = 32;
      c.mask = causal();
      c.lengths = decode_lengths();
      c.tag = std::to_string(kv_heads) + "kvheads";
      list.add(c);
      if (types.first == DType::kF16) continue;
      c.lengths = {"chunk", {{9, 40}, {18, 18}}};
      list.add(c);
    }
  }
}

void add_pages(CaseList& list) {
  constexpr KVStorage kStorage[] = {KVStorage::kSeparate, KVStorage::kInterleaved};
  size_t turn = 0;  // types alternate: no code depends on both the type and the page table
  for (const int32_t page_size : {1, 2, 16, 17, 64, 128, 256}) {
    for (const PageLayout layout : {PageLayout::kNHD, PageLayout::kHND}) {
      for (const KVLayout table : {KVLayout::kBlockTable, KVLayout::kCsr}) {
        for (const KVStorage storage : kStorage) {
          Case c = with_types(kTypes[turn++ % kTypes.size()]);
          c.q_heads = 4;
          c.kv_heads = 2;
          c.dim_qk = c.dim_vo = 40;
          c.page_size = page_size;
          c.page_layout = layout;
          c.kv_layout = table;
          c.storage = storage;
          c.mask = causal();
          c.lengths = mixed_lengths();
          c.lengths.name = "mixededges";
          c.lengths.sequences.push_back({2, page_size});
          c.lengths.sequences.push_back({3, page_size + 1});
          list.add(c);
        }
      }
      turn++;
    }
  }
}

void add_layouts(CaseList& list) {
  for (const KVLayout layout : {KVLayout::kDense, KVLayout::kRagged, KVLayout::kBlockTable}) {
    for (const bool is_q_ragged : {true, false}) {
      for (const bool has_gaps : {false, true}) {
        for (const auto& types : kTypes) {
          if (types.second == DType::kF8E4M3 && !has_gaps) continue;
          Case c = with_types(types);
          c.q_heads = 6;
          c.kv_heads = 2;
          c.dim_qk = 48;
          c.dim_vo = 24;
          c.kv_layout = layout;
          c.is_q_ragged = is_q_ragged;
          c.padding_rows = is_q_ragged ? 0 : 2;
          c.padding_keys = layout == KVLayout::kDense ? 5 : 0;
          if (has_gaps) {
            c.inner_gap = 3;
            c.middle_gap = 5;
            c.outer_gap = 7;
            c.outputs_have_gaps = true;
          }
          c.lengths = {"cross", {{12, 70}, {33, 20}, {1, 40}, {0, 3}, {5, 0}}};
          c.wants_statistics = !(has_gaps && types.first == DType::kF16);
          list.add(c);
        }
      }
    }
  }
  // Full dense K and V: a call without lengths.
  for (const auto& types : kTypes) {
    Case c = with_types(types);
    c.kv_layout = KVLayout::kDense;
    c.is_q_ragged = false;
    c.lengths = {"square", {{48, 48}, {48, 48}}};
    c.mask = causal();
    list.add(c);
  }
}

void add_length_edges(CaseList& list) {
  constexpr int32_t kEdges[] = {15,  16,  17,  31,  32,  33,  47,  48,   49,   63,   64,
                                65,  95,  96,  97,  127, 128, 129, 191,  193,  255,  256,
                                257, 383, 384, 511, 512, 513, 767, 1000, 1023, 1024, 1025};
  size_t turn = 0;
  for (const int32_t n : kEdges) {
    Case c = with_types(kTypes[turn++ % 2]);
    c.mask = causal();
    const std::string length = std::to_string(n);
    c.lengths = {"decode" + length, {{1, n}, {1, n}}};
    list.add(c);
    c = with_types(kTypes[turn % 2]);
    c.mask = causal();
    c.page_size = 64;
    c.dim_qk = c.dim_vo = 32;
    c.lengths = {"tail" + length, {{std::min(n, 21), n}}};
    list.add(c);
    if (n > 260) continue;
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      c = with_types({dtype, dtype});
      c.q_heads = 1;
      c.dim_qk = c.dim_vo = 32;
      c.kv_layout = turn % 2 == 0 ? KVLayout::kBlockTable : KVLayout::kRagged;
      c.mask = causal();
      c.lengths = {"prefill" + length, {{n, n}}};
      list.add(c);
    }
  }
}

}  // namespace pagoda::conformance
