// Cases of prompts beside decoding sequences, which some kernels compute at the same time.
#include <array>
#include <cstdint>
#include <string>

#include "testing/conformance/case_list.hpp"
#include "testing/conformance/mask_material.hpp"

namespace pagoda::conformance {
namespace {

// Longer than 64 rows: prompts. Sequences without rows or keys, and of rows that are decoded with
// some numbers of query heads a KV head only, stand among them. By default a prompt has more than
// 300 rows, and a sequence more than 1,024 keys.
NamedLengths decodes_first(int32_t rows = 301, int32_t keys = 1100) {
  return {"decodes_first",
          {{1, keys}, {1, 33}, {16, 90}, {0, 9}, {3, 140}, {1, 0}, {rows, rows + 10}, {66, 66}}};
}
NamedLengths prompts_first(int32_t rows = 301, int32_t keys = 1100) {
  return {"prompts_first", {{rows, rows}, {1, keys}, {9, 16}, {4, 129}, {17, 40}}};
}
NamedLengths prompts_between(int32_t rows = 301, int32_t keys = 1100) {
  return {"prompts_between", {{1, keys}, {90, 400}, {1, 90}, {20, 20}, {rows, rows + 1}, {2, 300}}};
}
// Chunks over so many keys that their row tiles are split.
NamedLengths over_long(int32_t rows, int32_t keys) {
  return {"over_long", {{1, 300}, {rows, keys}, {2, 600}, {20, keys / 2 + 99}, {1, 40}}};
}
// More sequences than a warp has lanes.
NamedLengths many_decodes() {
  NamedLengths lengths{"many_decodes", {}};
  for (int32_t i = 0; i < 70; ++i) lengths.sequences.push_back({1, 20 + 7 * i});
  lengths.sequences.push_back({1, 1100});
  lengths.sequences.push_back({80, 80});
  lengths.sequences.push_back({70, 300});
  return lengths;
}

std::array<NamedLengths, 3> few_rows() {
  return {decodes_first(130, 700), prompts_first(200, 500), prompts_between(150, 260)};
}
std::array<NamedLengths, 3> more_rows() {
  return {decodes_first(), prompts_first(), prompts_between()};
}

}  // namespace

void add_mixed(CaseList& list) {
  struct Heads {
    int32_t q, kv;
  };
  Case first;
  first.q_dtype = first.kv_dtype = DType::kBF16;
  first.mask = causal();
  first.page_size = 16;
  // On four multiprocessors each has a part of every kind, on 132 row tiles are split.
  for (const int32_t num_sms : {4, 132}) {
    for (const Heads heads : {Heads{4, 2}, Heads{14, 2}, Heads{8, 1}}) {
      for (const NamedLengths& lengths : num_sms == 4 ? few_rows() : more_rows()) {
        Case c = first;
        c.num_sms = num_sms;
        c.q_heads = heads.q;
        c.kv_heads = heads.kv;
        c.lengths = lengths;
        c.dim_qk = c.dim_vo = heads.q == 14 ? 64 : 128;
        c.tag = "beside_on" + std::to_string(num_sms);
        list.add(c);
      }
    }
  }
  // So few and short that a launch need not divide the work.
  for (const int32_t dim : {64, 128, 256}) {
    Case c = first;
    c.num_sms = 132;
    c.q_heads = 8;
    c.kv_heads = 2;
    c.dim_qk = c.dim_vo = dim;
    c.tag = "beside_small";
    for (const NamedLengths& lengths : few_rows()) {
      c.lengths = lengths;
      list.add(c);
    }
  }
  constexpr Heads kDims[] = {{96, 96}, {192, 128}, {256, 256}, {40, 40}};
  for (const Heads dims : kDims) {
    Case c = first;
    c.q_heads = 8;
    c.kv_heads = 2;
    c.dim_qk = dims.q;
    c.dim_vo = dims.kv;
    c.page_size = 64;
    c.lengths = decodes_first();
    c.tag = "beside";
    list.add(c);
  }
  Case c = first;
  c.q_heads = 8;
  c.kv_heads = 2;
  c.page_size = 64;
  for (const int32_t num_sms : {4, 132}) {
    c.num_sms = num_sms;
    c.tag = "beside_on" + std::to_string(num_sms);
    c.dim_qk = c.dim_vo = num_sms == 4 ? 64 : 128;
    c.lengths = over_long(90, 4500);
    list.add(c);
    c.dim_qk = c.dim_vo = 256;
    c.lengths = over_long(310, 2300);
    list.add(c);
  }
  c = first;
  c.dim_qk = c.dim_vo = 128;
  c.q_heads = 8;
  c.kv_heads = 2;
  c.tag = "beside";
  c.lengths = many_decodes();
  list.add(c);
  c.q_heads = 4;
  c.dim_qk = c.dim_vo = 64;
  c.q_dtype = c.kv_dtype = DType::kF16;
  c.mask = {};
  c.sinks = 0.5F;
  c.zeroed_rows = 5;
  c.kv_layout = KVLayout::kDense;
  c.lengths = prompts_between();
  list.add(c);
  c.zeroed_rows = 0;
  c.padding_rows = 3;
  c.kv_layout = KVLayout::kCsr;
  c.out = DType::kF32;
  list.add(c);
  c = first;
  c.dim_qk = c.dim_vo = 64;
  c.q_heads = 6;
  c.kv_heads = 2;
  c.tag = "beside";
  c.kv_dtype = DType::kF8E4M3;
  c.lengths = decodes_first(130, 700);
  list.add(c);
  c.kv_dtype = DType::kBF16;
  c.softcap = 8;
  list.add(c);
  c.softcap = 0;
  c.demand = Demand::kRepeats;
  c.lengths = prompts_first();
  list.add(c);
}

}  // namespace pagoda::conformance
