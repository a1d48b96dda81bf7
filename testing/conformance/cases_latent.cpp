// Latent attention (MLA with absorbed projections): one KV head, V inside K. GPU kernels for it
// have row tiles of 64 rows, whole tokens of up to 64 query heads.
#include <cstdint>
#include <string>
#include <utility>

#include "testing/conformance/case_list.hpp"
#include "testing/material/mask_table.hpp"

namespace pagoda::conformance {
namespace {

constexpr int32_t kH200 = 132;  // multiprocessors

Case latent(int32_t q_heads, NamedLengths lengths) {
  Case c;
  c.q_dtype = c.kv_dtype = DType::kBF16;
  c.q_heads = q_heads;
  c.dim_qk = 576;
  c.dim_vo = 512;
  c.page_size = 64;
  c.storage = KVStorage::kVInsideK;
  c.softmax_scale = 0.0722F;  // 1 / sqrt(192)
  c.mask = {"causal", [](MaskMaterial& /*material*/) { return Mask::causal(); }};
  c.lengths = std::move(lengths);
  return c;
}

}  // namespace

void add_latent(CaseList& list) {
  const NamedLengths tokens = {"tokens", {{1, 150}, {1, 64}, {1, 1}, {1, 0}, {1, 333}}};
  // Head tiles: a part of one, one, one and a half, two.
  for (const int32_t q_heads : {16, 64, 96, 128}) list.add(latent(q_heads, tokens));
  // Several tokens, of which rows of the last keys see different numbers.
  list.add(latent(16, {"mtp", {{4, 200}, {6, 70}, {3, 3}, {1, 130}}}));
  list.add(latent(24, {"mtp", {{4, 200}, {5, 70}, {0, 9}, {1, 130}}}));
  list.add(latent(128, {"mtp", {{2, 130}, {1, 65}}}));
  list.add(latent(8, {"prompts", {{40, 40}, {70, 190}}}));
  // Splits that all CTAs of a row tile merge, two, several and many.
  Case c = latent(16, {"splits", {{1, 2000}}});
  c.num_sms = kH200;
  list.add(c);
  c = latent(128, {"splits", {{1, 900}, {1, 300}}});
  c.num_sms = kH200;
  c.sinks = 0.5F;
  list.add(c);
  // Two KV heads, HND, f16, a window, pages of other sizes, CSR, O of other types.
  c = latent(32, tokens);
  c.q_dtype = c.kv_dtype = DType::kF16;
  c.kv_heads = 2;
  c.page_layout = PageLayout::kHND;
  list.add(c);
  c.mask = {"window99", [](MaskMaterial& /*material*/) { return Mask::window(99, 0); }};
  c.page_size = 16;
  list.add(c);
  for (const int32_t page_size : {8, 32, 128, 24, 1}) {
    c = latent(16, tokens);
    c.page_size = page_size;
    list.add(c);
  }
  c = latent(16, tokens);
  c.kv_layout = KVLayout::kCsr;
  list.add(c);
  for (const DType out : {DType::kF32, DType::kF16, DType::kF8E4M3}) {
    c = latent(80, tokens);
    c.out = out;
    list.add(c);
    c = latent(20, {"splits", {{1, 700}}});
    c.out = out;
    c.num_sms = kH200;
    list.add(c);
  }
  // Fewer columns than the tiles have.
  c = latent(16, tokens);
  c.dim_qk = 320;
  c.dim_vo = 256;
  list.add(c);
  c.dim_qk = 552;
  c.dim_vo = 488;
  list.add(c);
  // Dense caches, padded queries; without LSE and maxima.
  c = latent(16, {"dense", {{2, 140}, {2, 64}}});
  c.kv_layout = KVLayout::kDense;
  c.is_q_ragged = false;
  c.mask = {"full", [](MaskMaterial& /*material*/) { return Mask::none(); }};
  c.wants_statistics = false;
  list.add(c);
  c = latent(16, tokens);
  c.demand = Demand::kBatchInvariant;
  c.tag = "invariant";
  list.add(c);
  c = latent(64, {"splits", {{1, 700}, {1, 40}}});
  c.demand = Demand::kRepeats;
  c.tag = "repeats";
  list.add(c);
}

}  // namespace pagoda::conformance
