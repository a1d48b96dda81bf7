// How random cases are drawn: what callers use mostly, everything else sometimes.
#include "testing/conformance/random_cases.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <tuple>
#include <utility>

#include "testing/conformance/case_list.hpp"
#include "testing/conformance/mask_material.hpp"
#include "testing/conformance/random.hpp"
#include "testing/conformance/runner.hpp"

namespace pagoda::conformance {
namespace {

constexpr double kMostMultiplyAdds = 100e6;

class Draw {
 public:
  Draw(int64_t seed, int64_t index)
      : random_("random cases " + std::to_string(seed), static_cast<uint64_t>(index)) {}

  bool chance(double probability) { return random_.uniform() < probability; }
  int32_t between(int32_t lo, int32_t hi) {
    return lo + static_cast<int32_t>(random_.below(hi - lo + 1));
  }
  // As many of each order of magnitude.
  int32_t log_between(int32_t lo, int32_t hi) {
    const double value = lo * std::pow(static_cast<double>(hi) / lo, random_.uniform());
    return std::clamp(static_cast<int32_t>(std::lround(value)), lo, hi);
  }
  float real(float lo, float hi) { return lo + (hi - lo) * static_cast<float>(random_.uniform()); }
  template <class T, size_t n>
  T one_of(const std::array<T, n>& items) {
    return items[static_cast<size_t>(random_.below(n))];
  }

 private:
  Random random_;
};

// --- shapes ------------------------------------------------------------------------------------

void draw_types(Draw& draw, Case& c) {
  using enum DType;
  constexpr std::array<std::pair<DType, DType>, 12> kTypes = {{{kBF16, kBF16},
                                                               {kBF16, kBF16},
                                                               {kBF16, kBF16},
                                                               {kBF16, kBF16},
                                                               {kF16, kF16},
                                                               {kF16, kF16},
                                                               {kBF16, kF8E4M3},
                                                               {kBF16, kF8E4M3},
                                                               {kF16, kF8E4M3},
                                                               {kF8E4M3, kF8E4M3},
                                                               {kF8E4M3, kF8E4M3},
                                                               {kF32, kF32}}};
  std::tie(c.q_dtype, c.kv_dtype) = draw.one_of(kTypes);
  if (!draw.chance(0.15)) return;
  c.out = draw.one_of(std::array{kF32, kBF16, kF16, kF8E4M3});
  if (*c.out == kF8E4M3) c.out_scale = 0.02F;
}

void draw_heads(Draw& draw, Case& c) {
  constexpr std::array<std::pair<int32_t, int32_t>, 16> kDims = {{{64, 64},
                                                                  {64, 64},
                                                                  {64, 64},
                                                                  {128, 128},
                                                                  {128, 128},
                                                                  {128, 128},
                                                                  {128, 128},
                                                                  {256, 256},
                                                                  {256, 256},
                                                                  {96, 96},
                                                                  {192, 128},
                                                                  {80, 80},
                                                                  {72, 72},
                                                                  {40, 40},
                                                                  {112, 112},
                                                                  {576, 512}}};
  std::tie(c.dim_qk, c.dim_vo) = draw.one_of(kDims);
  c.kv_heads = draw.one_of(std::array{1, 1, 2, 2, 3, 4, 8});
  c.q_heads = c.kv_heads * draw.one_of(std::array{1, 1, 2, 3, 4, 4, 5, 7, 8, 8, 12, 16});
}

// Query rows and keys of a sequence.
Sequence draw_sequence(Draw& draw, int32_t style) {
  Sequence s;
  switch (style) {
    case 0:  // decode
      s.q = 1;
      s.kv = draw.log_between(1, 3000);
      break;
    case 1:  // verification of drafts
      s.q = draw.between(2, 16);
      s.kv = s.q + draw.log_between(1, 2000);
      break;
    case 2:  // a chunk of a prompt
      s.q = draw.log_between(5, 400);
      s.kv = s.q + draw.log_between(1, 3000);
      break;
    case 3:  // a prompt
      s.q = s.kv = draw.log_between(1, 700);
      break;
    default:  // any two numbers, zero among them
      s.q = draw.log_between(1, 300) - 1;
      s.kv = draw.log_between(1, 1500) - 1;
  }
  return s;
}

// Styles of a batch after those of draw_sequence(). A step of an engine, decoding beside chunks and
// prompts, is drawn twice as often as another style: many of them have no prompt left after the
// work is limited, or a type or mask that kernels compute in two launches.
constexpr int32_t kOfAllStyles = 5, kStepOfAnEngine = 6;

void draw_lengths(Draw& draw, Case& c) {
  const int32_t style = std::min(draw.between(0, kStepOfAnEngine + 1), kStepOfAnEngine);
  const bool is_step = style == kStepOfAnEngine;
  std::vector<Sequence>& all = c.lengths.sequences;
  const int32_t batch = draw.log_between(is_step ? 3 : 1, style <= 1 || is_step ? 40 : 12);
  const bool is_uniform = !is_step && draw.chance(0.4);
  for (int32_t b = 0; b < batch; ++b) {
    int32_t own = style;
    if (style == kOfAllStyles) own = draw.between(0, 4);
    if (is_step) own = draw.chance(0.6) ? draw.between(0, 1) : draw.between(2, 3);
    all.push_back(is_uniform && b > 0 ? all[0] : draw_sequence(draw, own));
  }
  // Of too much work the last sequences are left out, then the keys.
  while (multiply_adds(c, Effort{.repeats = 3}) > kMostMultiplyAdds) {
    if (all.size() > 1) {
      all.pop_back();
    } else {
      all[0].q = (all[0].q + 1) / 2;
      all[0].kv = std::max(all[0].q, all[0].kv / 2);
    }
  }
  if (draw.chance(0.1)) {  // queries that are not at the end of the keys
    for (Sequence& s : all) s.cache_length = draw.between(-s.q, s.kv);
  }
  for (size_t b = 0; b < all.size(); ++b) {
    if (b == 4) {
      c.lengths.name += "+" + std::to_string(all.size() - b);
      break;
    }
    c.lengths.name +=
        (b == 0 ? "" : "+") + std::to_string(all[b].q) + "x" + std::to_string(all[b].kv);
  }
}

// --- memory ------------------------------------------------------------------------------------

void draw_layout(Draw& draw, Case& c) {
  using enum KVLayout;
  c.kv_layout = draw.one_of(
      std::array{kDense, kRagged, kBlockTable, kBlockTable, kBlockTable, kBlockTable, kCsr, kCsr});
  c.page_size = draw.chance(0.2) ? draw.between(1, 300)
                                 : draw.one_of(std::array{8, 16, 16, 32, 64, 64, 128, 256});
  if (draw.chance(0.3)) c.page_layout = PageLayout::kHND;
  if (c.is_paged() && c.dim_qk == c.dim_vo && draw.chance(0.15)) {
    c.storage = KVStorage::kInterleaved;
  }
  if (c.is_paged() && c.dim_qk == 576 && draw.chance(0.7)) c.storage = KVStorage::kVInsideK;
  if (c.is_paged() && draw.chance(0.2)) c.page_id_step = draw.between(2, 3);
  c.is_q_ragged = draw.chance(0.65);
  if (draw.chance(0.2)) c.padding_rows = draw.between(1, 70);
  if (c.is_q_ragged && draw.chance(0.1)) c.zeroed_rows = draw.between(1, 100);
  if (!c.is_paged() && draw.chance(0.3)) c.padding_keys = draw.between(1, 40);
  // Batches of other sequences would have another left padding, with it other tiles, and strides of
  // another alignment, with it other kernels.
  const bool is_invariant = c.demand == Demand::kBatchInvariant;
  if (!is_invariant && draw.chance(0.1)) c.leftpad = draw.log_between(1, 70);
  if (!is_invariant && draw.chance(0.15)) {
    const int64_t unit = draw.chance(0.5) ? 1 : 8;  // of 16-bit types: TMA's alignment
    c.inner_gap = unit * draw.between(0, 3);
    c.middle_gap = unit * draw.between(0, 3);
    c.outer_gap = unit * draw.between(0, 3);
  }
  c.outputs_have_gaps = draw.chance(0.15);
}

// --- scores ------------------------------------------------------------------------------------

void draw_mask(Draw& draw, Case& c) {
  // Arrays of a mask differ in batches of other sequences.
  const float kind = draw.real(0, c.demand == Demand::kBatchInvariant ? 0.75F : 1.0F);
  if (kind < 0.4F) {
    c.mask = {"causal", [](MaskMaterial&) { return Mask::causal(); }};
  } else if (kind < 0.6F) {
    c.mask = {};
  } else if (kind < 0.75F) {
    const int32_t left = draw.chance(0.1) ? -1 : draw.log_between(1, 800) - 1;
    const int32_t right = draw.chance(0.6) ? 0 : draw.log_between(1, 200) - 1;
    c.mask = {"window" + std::to_string(left) + "_" + std::to_string(right),
              [left, right](MaskMaterial&) { return Mask::window(left, right); }};
  } else {
    const auto last = static_cast<int32_t>(all_masks().size()) - 1;
    c.mask = all_masks()[static_cast<size_t>(draw.between(1, last))];
  }
}

void draw_scores(Draw& draw, Case& c) {
  draw_mask(draw, c);
  c.has_alibi = draw.chance(0.08);
  if (draw.chance(0.08)) c.softcap = draw.real(0.5F, 50);
  if (draw.chance(0.04)) c.has_score_functor = true;
  if (draw.chance(0.15)) c.sinks = draw.real(-3, 3);
  if (draw.chance(0.15)) c.softmax_scale = draw.real(0.02F, 0.3F);
  if (draw.chance(0.3)) c.amplitude = draw.real(0.3F, 4);
  const bool is_fp8 = c.kv_dtype == DType::kF8E4M3;
  if (draw.chance(is_fp8 ? 0.7 : 0.1)) {
    c.scales = draw.one_of(std::array{Scales::kPerTensor, Scales::kPerHead, Scales::kPerSequence});
  }
  if (c.q_dtype == DType::kF8E4M3 && draw.chance(0.6)) {
    c.q_scale = draw.real(0.3F, 2);
    if (draw.chance(0.5))
      c.q_scales = draw.one_of(std::array{Scales::kPerHead, Scales::kPerSequence});
  }
}

// --- results and options -----------------------------------------------------------------------

void draw_demands(Draw& draw, Case& c) {
  c.wants_statistics = draw.chance(0.6);
  c.has_heads_first = draw.chance(0.2);
  if (draw.chance(0.2)) c.lse_base = LogBase::k2;
  if (draw.chance(0.05)) {
    c.demand = Demand::kRepeats;
  } else if (draw.chance(0.08)) {
    c.demand = Demand::kBatchInvariant;
  }
  if (draw.chance(0.1)) {
    using enum Schedule;
    c.schedule = draw.one_of(std::array{kTransient, kPersistent, kQueue, kStreamK});
  }
  const bool may_split = c.demand != Demand::kBatchInvariant && c.schedule != Schedule::kStreamK;
  if (may_split && draw.chance(0.2)) c.num_kv_splits = draw.between(1, 9);
  c.num_sms = draw.one_of(std::array{0, 0, 3, 5, 16, 40, 132, 148});
}

Case draw_case(int64_t seed, int64_t index) {
  Draw draw(seed, index);
  Case c;
  draw_types(draw, c);
  draw_heads(draw, c);
  draw_demands(draw, c);
  draw_lengths(draw, c);
  draw_layout(draw, c);
  draw_scores(draw, c);
  c.tag = "random" + std::to_string(seed) + "_" + std::to_string(index);
  return c;
}

}  // namespace

std::vector<Case> random_cases(int64_t seed, int64_t count) {
  CaseList list;
  for (int64_t i = 0; i < count; ++i) list.add(draw_case(seed, i));
  return list.take();
}

}  // namespace pagoda::conformance
