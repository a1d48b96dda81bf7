// Cases that vary what a query sees and what happens to its scores.
#include <array>
#include <vector>

#include "testing/conformance/case_list.hpp"
#include "testing/conformance/mask_material.hpp"
#include "testing/material/mask_table.hpp"

namespace pagoda::conformance {
namespace {

Case small(DType dtype) {
  Case c;
  c.q_dtype = c.kv_dtype = dtype;
  c.q_heads = 4;
  c.kv_heads = 2;
  c.dim_qk = c.dim_vo = 32;
  return c;
}

}  // namespace

const std::vector<NamedMask>& all_masks() {
  static const std::vector<NamedMask> masks = [] {
    std::vector<NamedMask> all = {{"full", {}}};
    material::for_each_mask<MaskMaterial>([&](const char* name, auto make) {
      all.push_back({name, make});
    });
    return all;
  }();
  return masks;
}

void add_masks(CaseList& list) {
  for (const NamedMask& mask : all_masks()) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      Case c = small(dtype);
      c.mask = mask;
      c.lengths = mixed_lengths();
      // More queries than keys: the first rows have negative positions.
      c.lengths.sequences.push_back({20, 12});
      list.add(c);
      c.kv_layout = KVLayout::kDense;
      c.is_q_ragged = false;
      c.padding_rows = 1;
      c.q_heads = 2;
      c.lengths = {"prefill", {{70, 70}, {33, 150}}};
      list.add(c);
    }
    Case c = small(DType::kF16);
    c.mask = mask;
    c.q_heads = 5;
    c.kv_heads = 1;
    c.page_size = 64;
    c.lengths = {"decode", {{1, 300}, {1, 65}, {1, 15}}};
    list.add(c);
    // Of a head dim that has kernels for tokens that see all their keys: not where the mask hides
    // one.
    c.q_dtype = c.kv_dtype = DType::kBF16;
    c.q_heads = 4;
    c.dim_qk = c.dim_vo = 64;
    list.add(c);
  }
  // cache_lengths given by the caller: queries that are not at the end of the keys.
  for (const char* name : {"causal", "window8", "windowboth", "chunked16", "relative4"}) {
    for (const NamedMask& mask : all_masks()) {
      if (mask.name != name) continue;
      Case c = small(DType::kBF16);
      c.mask = mask;
      c.lengths = {"placed", {{5, 90, 40}, {20, 64, 0}, {1, 30, 29}, {3, 10, 50}}};
      list.add(c);
    }
  }
  // Chunks of more keys than a KV tile, without a causal mask, in KV splits: the first rows of a
  // row tile see none of the keys of the later splits.
  for (const DType dtype : {DType::kBF16, DType::kF8E4M3}) {
    Case c = small(dtype);
    c.q_heads = 2;
    c.kv_heads = 1;
    c.dim_qk = c.dim_vo = 64;
    c.mask = {"chunked1000", [](MaskMaterial& /*material*/) { return Mask::chunked(1000); }};
    c.wants_statistics = false;
    c.num_kv_splits = 8;
    c.tag = "placedchunks_splits8";
    c.lengths = {"scheduled", {{80, 2000, 960}}};
    list.add(c);
  }
}

void add_scores(CaseList& list) {
  const std::vector<NamedMask>& all = all_masks();
  const auto mask = [&](const std::string& name) {
    for (const NamedMask& m : all) {
      if (m.name == name) return m;
    }
    return NamedMask{};
  };
  struct Mods {
    const char* mask;
    bool has_alibi;
    float softcap;
    bool has_functor;
    std::optional<float> sinks;
  };
  const Mods kMods[] = {
      {"causal", true, 0, false, {}},       {"causal", false, 20, false, {}},
      {"causal", false, 1, false, {}},      {"causal", false, 0, true, {}},
      {"causal", false, 0, false, 0.0F},    {"causal", false, 0, false, 60.0F},
      {"causal", false, 0, false, -60.0F},  {"full", true, 0, false, {}},
      {"window8", false, 0, false, 1.0F},   {"window8", false, 30, false, 30.0F},
      {"causal", true, 15, false, {}},      {"chunked16", true, 0, false, -1.0F},
      {"additive4", false, 10, false, {}},  {"additive4", true, 0, true, 2.0F},
      {"tree", true, 5, false, 0.0F},       {"window_or_prefix", true, 25, true, 1.0F},
      {"nothing", false, 0, false, 3.0F},   {"bits_sparse_causal", false, 0, false, 1.0F},
      {"relative4", true, 50, true, -2.0F}, {"padding_causal", false, 0, false, 0.5F}};
  for (const Mods& mods : kMods) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      Case c = small(dtype);
      c.mask = mask(mods.mask);
      c.has_alibi = mods.has_alibi;
      c.softcap = mods.softcap;
      c.tag = mods.softcap == 0 ? "" : std::to_string(static_cast<int32_t>(mods.softcap));
      c.has_score_functor = mods.has_functor;
      c.sinks = mods.sinks;
      c.amplitude = mods.softcap == 0 ? 1 : 4;
      c.lengths = mixed_lengths();
      c.lengths.sequences.push_back({6, 2});
      list.add(c);
      c.q_heads = 16;
      c.page_size = 64;
      c.lengths = {"decode", {{1, 400}, {1, 100}, {1, 0}}};
      list.add(c);
    }
  }
  // tanh near 0, where a formula by exponentials loses digits.
  for (const DType dtype : {DType::kF32, DType::kF16}) {
    Case c = small(dtype);
    c.softcap = 50;
    c.amplitude = 0.02F;
    c.tag = "tinyscores";
    c.lengths = {"short", {{6, 4}, {3, 1}}};
    list.add(c);
  }
}

}  // namespace pagoda::conformance
