// Names, selection and the order of the conformance table.
#include "testing/conformance/case_list.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "testing/conformance/random.hpp"

namespace pagoda::conformance {
namespace {

std::string short_name(DType dtype) {
  return dtype == DType::kF8E4M3 ? "fp8" : pagoda::name(dtype);
}

std::string layout_name(const Case& c) {
  std::string text;
  switch (c.kv_layout) {
    case KVLayout::kDense: text = "dense"; break;
    case KVLayout::kRagged: text = "ragged"; break;
    case KVLayout::kBlockTable: text = "paged" + std::to_string(c.page_size); break;
    case KVLayout::kCsr: text = "csr" + std::to_string(c.page_size); break;
  }
  if (c.is_paged() && c.page_layout == PageLayout::kHND) text += "hnd";
  if (c.storage == KVStorage::kInterleaved) text += "_kv";
  if (c.storage == KVStorage::kVInsideK) text += "_mla";
  if (!c.is_q_ragged) text += "_padq";
  if (c.inner_gap + c.middle_gap + c.outer_gap != 0) text += "_gaps";
  if (c.leftpad != 0) text += "_leftpad" + std::to_string(c.leftpad);
  if (c.zeroed_rows != 0) text += "_zeroedrows";
  return text;
}

std::string heads_name(const Case& c) {
  std::string text = c.kv_heads == 1 && c.q_heads > 8
                         ? "_mqa" + std::to_string(c.q_heads)
                         : "_gqa" + std::to_string(c.q_heads / c.kv_heads);
  text += "_hd" + std::to_string(c.dim_qk);
  if (c.dim_vo != c.dim_qk) text += "x" + std::to_string(c.dim_vo);
  return text;
}

std::string scores_name(const Case& c) {
  std::string text;
  if (c.has_alibi) text += "_alibi";
  if (c.softcap != 0) text += "_softcap";
  if (c.has_score_functor) text += "_scorefn";
  if (c.sinks) text += *c.sinks > 10 ? "_sinkhigh" : *c.sinks < -10 ? "_sinklow" : "_sink";
  if (c.scales == Scales::kPerTensor) text += "_scale";
  if (c.scales == Scales::kPerHead) text += "_headscale";
  if (c.scales == Scales::kPerSequence) text += "_seqscale";
  if (c.q_scales == Scales::kPerHead) text += "_qheadscale";
  if (c.q_scales == Scales::kPerSequence) text += "_qseqscale";
  return text;
}

std::string full_name(const Case& c) {
  std::string text = layout_name(c) + heads_name(c) + "_" + short_name(c.q_dtype);
  if (c.kv_dtype != c.q_dtype) text += "_kv" + short_name(c.kv_dtype);
  if (c.out) text += "_out" + short_name(*c.out);
  text += "_" + c.mask.name + scores_name(c) + "_" + c.lengths.name;
  return c.tag.empty() ? text : text + "_" + c.tag;
}

// * stands for any text, ? for any one character.
bool matches(std::string_view text, std::string_view pattern) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return matches(text, pattern.substr(1)) || (!text.empty() && matches(text.substr(1), pattern));
  }
  return !text.empty() && (pattern[0] == '?' || pattern[0] == text[0]) &&
         matches(text.substr(1), pattern.substr(1));
}

std::vector<Case> build_table() {
  CaseList list;
  add_dims(list);
  add_groups(list);
  add_pages(list);
  add_layouts(list);
  add_length_edges(list);
  add_masks(list);
  add_decode(list);
  add_soft_caps(list);
  add_latent(list);
  add_scores(list);
  add_fp8(list);
  add_fp8_prefill(list);
  add_tall_rows(list);
  add_last_waves(list);
  add_equal_shares(list);
  add_short_tiles(list);
  add_many_tiles(list);
  add_shared_merges(list);
  add_packed_heads(list);
  add_few_e4m3_rows(list);
  add_mixed(list);
  add_output_types(list);
  add_tile_edges(list);
  add_large_heads(list);
  add_empty(list);
  add_numerics(list);
  add_leaps(list);
  add_long(list);
  add_schedules(list);
  add_huge_offsets(list);
  add_repeats(list);
  add_batch_invariance(list);
  add_traps(list);
  add_used_lengths(list);
  add_statistics(list);
  add_scales(list);
  add_leftpads(list);
  add_zeroed_rows(list);
  return list.take();
}

}  // namespace

void CaseList::add(Case c) {
  c.name = full_name(c);
  if (c.seed.empty()) c.seed = c.name;
  c.wants_row_max &= c.wants_statistics && Random(c.name + "/row_max").below(2) == 0;
  uint64_t id = 0;
  for (Sequence& s : c.lengths.sequences) s.id = id++;
  for (const Case& other : cases_) {
    if (other.name != c.name) continue;
    std::fprintf(stderr, "two conformance cases are named %s\n", c.name.c_str());
    std::abort();
  }
  cases_.push_back(std::move(c));
}

NamedLengths decode_lengths() { return {"decode", {{1, 64}, {1, 129}, {1, 1}, {1, 47}}}; }

NamedLengths prefill_lengths() { return {"prefill", {{37, 37}, {66, 66}}}; }

// Decode, whole prompt, chunk of a prompt, nothing, verification of a few drafts.
NamedLengths mixed_lengths() {
  return {"mixed", {{1, 33}, {24, 24}, {17, 100}, {0, 9}, {1, 200}, {4, 65}}};
}

NamedMask causal() {
  return {"causal", [](MaskMaterial&) { return Mask::causal(); }};
}

const std::vector<Case>& all_cases() {
  static const std::vector<Case> cases = build_table();
  return cases;
}

std::vector<const Case*> select_cases(std::string_view pattern, const std::vector<Case>& from) {
  const bool is_glob = pattern.find_first_of("*?") != std::string_view::npos;
  std::vector<const Case*> selected;
  for (const Case& c : from) {
    const bool is_hit =
        is_glob ? matches(c.name, pattern) : c.name.find(pattern) != std::string::npos;
    if (is_hit) selected.push_back(&c);
  }
  return selected;
}

}  // namespace pagoda::conformance
