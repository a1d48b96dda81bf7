// Cases of prompts beside decoding sequences, which some kernels compute at the same time.
#include <array>
#include <cstdint>
#include <string>

#include "testing/conformance/case_list.hpp"
#include "testing/conformance/mask_material.hpp"

namespace pagoda::conformance {
namespace {

// Longer than 64 rows: prompts. Sequences without rows or keys, and of rows that are decoded with
// some numbers of query heads a KV head only, stand among them. `rows` of the longest prompt and
// `keys` of the longest sequence, which has one row or two, decide whether Hopper decodes beside
// prompts or has row tiles for both.
NamedLengths decodes_first(int32_t rows, int32_t keys) {
  return {"decodes_first",
          {{1, keys}, {1, 33}, {16, 90}, {0, 9}, {3, 140}, {1, 0}, {rows, rows + 10}, {66, 66}}};
}
NamedLengths prompts_first(int32_t rows, int32_t keys) {
  return {"prompts_first", {{rows, rows}, {1, keys}, {9, 16}, {4, 129}, {17, 40}}};
}
NamedLengths prompts_between(int32_t rows, int32_t keys) {
  return {"prompts_between", {{1, keys}, {90, 400}, {1, 90}, {20, 20}, {rows, rows + 1}, {2, 300}}};
}
// Chunks over so many keys that their row tiles are split.
NamedLengths over_long(int32_t rows, int32_t keys) {
  return {"over_long", {{1, 300}, {rows, keys}, {2, 600}, {20, keys / 2 + 99}, {1, 40}}};
}
// More sequences than a warp has lanes.
NamedLengths many_decodes(int32_t keys) {
  NamedLengths lengths{"many_decodes", {}};
  for (int32_t i = 0; i < 70; ++i) lengths.sequences.push_back({1, 20 + 7 * i});
  lengths.sequences.push_back({1, keys});
  lengths.sequences.push_back({80, 80});
  lengths.sequences.push_back({70, 300});
  return lengths;
}

// Up to 64 rows, fewer of more keys.
NamedLengths few_rows(int32_t rows, int32_t keys) {
  return {"few_rows", {{17, 300}, {2, 2100}, {rows, rows + 28}, {0, 40}, {1, 900}, {30, keys}}};
}

std::array<NamedLengths, 3> all_orders(int32_t rows, int32_t keys) {
  return {decodes_first(rows, keys), prompts_first(rows, keys), prompts_between(rows, keys)};
}

// The longest prompt and the longest sequence of a call of these heads and head dims, on so many
// multiprocessors.
struct Work {
  int32_t num_sms;
  int32_t q_heads, kv_heads;
  int32_t dim_qk, dim_vo;
  int32_t rows, keys;
};

Case case_of(const Work& work, const std::string& tag) {
  Case c;
  c.q_dtype = c.kv_dtype = DType::kBF16;
  c.mask = causal();
  c.page_size = 16;
  c.num_sms = work.num_sms;
  c.q_heads = work.q_heads;
  c.kv_heads = work.kv_heads;
  c.dim_qk = work.dim_qk;
  c.dim_vo = work.dim_vo;
  c.tag = tag;
  return c;
}

// So much work, by the bounds, that a launch divides it. On two multiprocessors each has a part of
// every kind, on 132 row tiles are split.
void add_divided(CaseList& list) {
  constexpr Work kInAllOrders[] = {{2, 4, 2, 128, 128, 130, 3800},
                                   {2, 14, 2, 64, 64, 130, 2300},
                                   {2, 8, 1, 128, 128, 130, 2500},
                                   {132, 14, 2, 64, 64, 601, 34'800},
                                   {132, 8, 1, 128, 128, 601, 40'300}};
  for (const Work& work : kInAllOrders) {
    for (const NamedLengths& lengths : all_orders(work.rows, work.keys)) {
      Case c = case_of(work, "beside_on" + std::to_string(work.num_sms));
      c.lengths = lengths;
      list.add(c);
    }
  }
  constexpr Work kOfOtherDims[] = {
      {132, 8, 1, 96, 96, 601, 40'300},   {132, 8, 1, 192, 128, 601, 40'300},
      {132, 8, 1, 256, 256, 601, 20'100}, {2, 8, 2, 96, 96, 301, 1200},
      {2, 8, 2, 192, 128, 301, 1200},     {2, 8, 2, 256, 256, 301, 1200},
      {2, 8, 2, 40, 40, 301, 1700}};
  for (const Work& work : kOfOtherDims) {
    Case c = case_of(work, "beside_on" + std::to_string(work.num_sms));
    c.page_size = 64;
    c.lengths = decodes_first(work.rows, work.keys);
    list.add(c);
  }
  Case c = case_of({2, 8, 2, 64, 64, 90, 5900}, "beside_on2");
  c.page_size = 64;
  c.lengths = over_long(90, 5900);
  list.add(c);
  c.dim_qk = c.dim_vo = 256;
  c.lengths = over_long(310, 2300);
  list.add(c);
  c = case_of({2, 8, 2, 128, 128, 80, 3900}, "beside_on2");
  c.lengths = many_decodes(3900);
  list.add(c);
  c.q_heads = 4;
  c.dim_qk = c.dim_vo = 64;
  c.q_dtype = c.kv_dtype = DType::kF16;
  c.mask = {};
  c.sinks = 0.5F;
  c.zeroed_rows = 5;
  c.kv_layout = KVLayout::kDense;
  c.lengths = prompts_between(301, 3000);
  list.add(c);
  c.zeroed_rows = 0;
  c.padding_rows = 3;
  c.kv_layout = KVLayout::kCsr;
  c.out = DType::kF32;
  list.add(c);
  c = case_of({2, 6, 2, 64, 64, 301, 2400}, "beside_on2");
  c.demand = Demand::kRepeats;
  c.lengths = prompts_first(301, 2400);
  list.add(c);
}

// Scores and caches without such a launch have two.
void add_apart(CaseList& list) {
  Case c = case_of({2, 6, 2, 64, 64, 130, 3900}, "beside_apart");
  c.lengths = decodes_first(130, 3900);
  c.kv_dtype = DType::kF8E4M3;
  list.add(c);
  c.kv_dtype = DType::kBF16;
  c.softcap = 8;
  list.add(c);
  c.softcap = 0;
  c.has_alibi = true;
  list.add(c);
}

// So little work that all sequences are row tiles, of which long ones have splits and short ones
// have fewer or none.
void add_little(CaseList& list) {
  constexpr Work kWork[] = {{132, 8, 2, 64, 64, 130, 700},   {132, 8, 2, 128, 128, 130, 700},
                            {132, 8, 2, 256, 256, 130, 700}, {132, 4, 2, 128, 128, 301, 1100},
                            {132, 14, 2, 64, 64, 301, 1100}, {132, 8, 1, 128, 128, 130, 5000},
                            {132, 8, 1, 64, 64, 130, 9000}};
  for (const Work& work : kWork) {
    for (const NamedLengths& lengths : all_orders(work.rows, work.keys)) {
      Case c = case_of(work, "beside_little");
      c.lengths = lengths;
      list.add(c);
    }
  }
  Case c = case_of({132, 8, 2, 128, 128, 90, 4500}, "beside_little");
  c.lengths = over_long(90, 4500);
  list.add(c);
  c.dim_qk = c.dim_vo = 256;
  c.lengths = over_long(310, 2300);
  list.add(c);
  // Up to 64 rows each; splits are merged by one CTA, or by all.
  constexpr Work kFew[] = {{4, 4, 1, 64, 64, 42, 3000},
                           {4, 14, 2, 128, 128, 42, 3000},
                           {4, 8, 4, 256, 256, 42, 3000},
                           {4, 4, 1, 96, 96, 42, 3000}};
  for (Work work : kFew) {
    for (const int32_t num_sms : {4, 132}) {
      work.num_sms = num_sms;
      c = case_of(work, "unequal_on" + std::to_string(num_sms));
      c.lengths = few_rows(work.rows, work.keys);
      list.add(c);
    }
  }
  // Of other scores and caches.
  c = case_of({132, 6, 2, 128, 128, 42, 3000}, "unequal_on132");
  c.lengths = few_rows(42, 3000);
  c.has_alibi = true;
  list.add(c);
  c.has_alibi = false;
  for (const NamedLengths& lengths : {few_rows(42, 3000), decodes_first(130, 700)}) {
    c.lengths = lengths;
    c.mask = {"window101", [](MaskMaterial& /*material*/) { return Mask::window(100, 0); }};
    list.add(c);
    c.mask = causal();
    c.softcap = 8;
    list.add(c);
    c.softcap = 0;
    c.kv_dtype = DType::kF8E4M3;
    list.add(c);
    c.q_dtype = DType::kF8E4M3;
    list.add(c);
    c.q_dtype = c.kv_dtype = DType::kBF16;
  }
}

}  // namespace

void add_mixed(CaseList& list) {
  add_divided(list);
  add_apart(list);
  add_little(list);
}

}  // namespace pagoda::conformance
