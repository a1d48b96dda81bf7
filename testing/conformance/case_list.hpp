// CaseList: collects cases and names each after its properties.
#pragma once

#include <vector>

#include "testing/conformance/case.hpp"

namespace pagoda::conformance {

class CaseList {
 public:
  // Names the case, numbers its sequences and appends it. Two cases of one name end the program.
  void add(Case c);
  [[nodiscard]] std::vector<Case> take() { return std::move(cases_); }

 private:
  std::vector<Case> cases_;
};

// Batches that many groups of cases use.
[[nodiscard]] NamedLengths decode_lengths();
[[nodiscard]] NamedLengths prefill_lengths();
[[nodiscard]] NamedLengths mixed_lengths();

[[nodiscard]] NamedMask causal();
// Masks of every kind and combinations of them; the first is none.
[[nodiscard]] const std::vector<NamedMask>& all_masks();

// One function per part of the table.
void add_dims(CaseList& list);
void add_groups(CaseList& list);
void add_pages(CaseList& list);
void add_layouts(CaseList& list);
void add_length_edges(CaseList& list);
void add_masks(CaseList& list);
void add_decode(CaseList& list);
void add_soft_caps(CaseList& list);
void add_latent(CaseList& list);
void add_scores(CaseList& list);
void add_fp8(CaseList& list);
void add_fp8_prefill(CaseList& list);
void add_tall_rows(CaseList& list);
void add_last_waves(CaseList& list);
void add_equal_shares(CaseList& list);
void add_short_tiles(CaseList& list);
void add_many_tiles(CaseList& list);
void add_shared_merges(CaseList& list);
void add_packed_heads(CaseList& list);
void add_few_e4m3_rows(CaseList& list);
void add_mixed(CaseList& list);
void add_schedules(CaseList& list);
void add_output_types(CaseList& list);
void add_used_lengths(CaseList& list);
void add_statistics(CaseList& list);
void add_scales(CaseList& list);
void add_leftpads(CaseList& list);
void add_zeroed_rows(CaseList& list);
void add_tile_edges(CaseList& list);
void add_large_heads(CaseList& list);
void add_empty(CaseList& list);
void add_numerics(CaseList& list);
void add_leaps(CaseList& list);
void add_long(CaseList& list);
void add_huge_offsets(CaseList& list);
void add_repeats(CaseList& list);
void add_batch_invariance(CaseList& list);
void add_traps(CaseList& list);

}  // namespace pagoda::conformance
