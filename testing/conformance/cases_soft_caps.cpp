// Soft caps with masks that are intervals. GPU kernels have a class of their own for them: tanh by
// polynomials where scores are far below the cap, else by exponentials.
#include <cstdint>
#include <string>
#include <utility>

#include "testing/conformance/case_list.hpp"
#include "testing/material/mask_table.hpp"

namespace pagoda::conformance {
namespace {

NamedMask causal() {
  return {"causal", [](MaskMaterial& /*material*/) { return Mask::causal(); }};
}
NamedMask window() {
  return {"window99", [](MaskMaterial& /*material*/) { return Mask::window(99, 0); }};
}

Case capped(std::pair<int32_t, int32_t> dims, float softcap, float amplitude) {
  Case c;
  c.q_dtype = c.kv_dtype = dims.first % 128 == 0 ? DType::kBF16 : DType::kF16;
  c.q_heads = 4;
  c.kv_heads = 2;
  c.dim_qk = dims.first;
  c.dim_vo = dims.second;
  c.mask = causal();
  c.softcap = softcap;
  c.amplitude = amplitude;
  c.tag = "cap" + std::to_string(static_cast<int32_t>(softcap));
  return c;
}

}  // namespace

void add_soft_caps(CaseList& list) {
  // Scores far below the cap, far above it, and both in a tile; at the edge of the polynomials.
  constexpr std::pair<float, float> kCaps[] = {{50, 1}, {1, 4}, {4, 3}};
  constexpr std::pair<int32_t, int32_t> kDims[] = {{64, 64},   {96, 96},   {128, 128},
                                                   {192, 128}, {256, 256}, {40, 56}};
  for (const auto& dims : kDims) {
    for (const auto& [softcap, amplitude] : kCaps) {
      Case c = capped(dims, softcap, amplitude);
      c.lengths = {"prompts", {{150, 150}, {0, 9}, {70, 300}, {200, 200}}};
      list.add(c);
      c.mask = window();
      c.page_size = 64;
      c.page_layout = PageLayout::kHND;
      c.sinks = 0.5F;
      list.add(c);
      c.mask = {"full", [](MaskMaterial& /*material*/) { return Mask::none(); }};
      c.sinks = {};
      c.kv_layout = KVLayout::kDense;
      c.is_q_ragged = false;
      c.wants_statistics = false;
      c.lengths = {"dense", {{130, 140}, {130, 64}}};
      list.add(c);
      // Few rows over many keys, of all query heads of a KV head.
      c = capped(dims, softcap, amplitude);
      c.q_heads = 8;
      c.lengths = {"fewrows", {{17, 900}, {9, 130}}};
      c.num_sms = 132;
      list.add(c);
      // One token or a few.
      c.lengths = {"onetoken", {{1, 700}, {1, 64}, {1, 0}, {1, 333}}};
      list.add(c);
      c.mask = window();
      c.page_size = 256;
      c.wants_statistics = false;
      c.lengths = {"tokens", {{4, 700}, {3, 3}, {1, 333}}};
      list.add(c);
    }
  }
  // An fp8 cache, which has general scores.
  Case c = capped({128, 128}, 30, 2);
  c.kv_dtype = DType::kF8E4M3;
  c.lengths = {"fp8cache", {{130, 130}, {1, 400}}};
  list.add(c);
}

}  // namespace pagoda::conformance
