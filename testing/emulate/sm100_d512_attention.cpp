// Launches of small instances of the Blackwell kernel for head dims above 128 on the emulator.
#include "kernels/mha_sm100_d512/kernel.hpp"
#include "testing/emulate/attention.hpp"
#include "testing/emulate/attention_case.hpp"

namespace pagoda::emulate {

using emulator::Options;
using kernels::Schedule;

namespace {

// One lane per row, one section of O, K in two slots.
struct RowConfig {
  using T = arch::BFloat16;
  using Out = arch::BFloat16;
  static constexpr mha_sm100_d512::TileConfig tile{.depth = AttentionCase::kDepth,
                                                   .block_rows = 128,
                                                   .BN = 32,
                                                   .BK0 = 32,
                                                   .slots = 3,
                                                   .swizzle = arch::Swizzle::k64B};
};

// Two lanes per row, two sections of O, K in four slots.
struct SectionConfig {
  using T = arch::BFloat16;
  using Out = arch::BFloat16;
  static constexpr mha_sm100_d512::TileConfig tile{.depth = AttentionCase::kDepth,
                                                   .block_rows = 64,
                                                   .BN = 32,
                                                   .BK0 = 16,
                                                   .slots = 5,
                                                   .swizzle = arch::Swizzle::k32B,
                                                   .scores = mha_sm100_d512::ScoreClass::kGeneral};
};

template <class Config_>
struct Traits {
  using Config = Config_;
  using Kernel = mha_sm100_d512::SM100MHAD512<Config>;
  static constexpr int block_rows = Config::tile.block_rows, blocks = mha_sm100_d512::kPair;
  static constexpr bool fuses_heads = true;
};

}  // namespace

// One CTA pair computes all work tiles: with rows in both CTAs, whole or with padding rows, with
// rows in one CTA, and without keys; one KV tile, and seven, which wrap the ring nine times.
Outcome run_mha_d512(const Options& options) {
  const AttentionShape shape{.kernel = "sm100/mha_d512",
                             .sequences = {{150, 160}, {70, 0}, {140, 200}, {33, 33}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 2,
                             .schedule = Schedule::kPersistent};
  return AttentionCase(shape, options.seed).run<Traits<RowConfig>>(options);
}

// Three heads per token, which do not divide the rows of a CTA.
Outcome run_mha_d512_sections(const Options& options) {
  const AttentionShape shape{.kernel = "sm100/mha_d512_sections",
                             .sequences = {{50, 70}, {30, 0}, {2, 150}, {13, 13}},
                             .num_kv_heads = 1,
                             .group = 3,
                             .ctas = 2,
                             .schedule = Schedule::kPersistent};
  return AttentionCase(shape, options.seed).run<Traits<SectionConfig>>(options);
}

// Decode: a stream-K partition of all KV tiles by two CTA pairs, with merges of two lanes per row.
Outcome run_mha_d512_decode(const Options& options) {
  const AttentionShape shape{.kernel = "sm100/mha_d512_decode",
                             .sequences = {{2, 150}, {1, 37}, {2, 0}, {30, 130}},
                             .num_kv_heads = 2,
                             .group = 3,
                             .ctas = 4,
                             .schedule = Schedule::kStreamK};
  return AttentionCase(shape, options.seed).run<Traits<SectionConfig>>(options);
}

// A queue of row tiles, of which the leaders draw for both CTAs, with their keys in two parts.
Outcome run_mha_d512_split(const Options& options) {
  const AttentionShape shape{.kernel = "sm100/mha_d512_split",
                             .sequences = {{140, 300}, {5, 0}, {66, 130}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 4,
                             .num_splits = 2};
  return AttentionCase(shape, options.seed).run<Traits<RowConfig>>(options);
}

// K and V gathered by two warps of each CTA from pages of 7 keys.
Outcome run_mha_d512_gathered(const Options& options) {
  const AttentionShape shape{.kernel = "sm100/mha_d512_gathered",
                             .sequences = {{150, 160}, {70, 0}, {140, 200}, {33, 33}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 2,
                             .schedule = Schedule::kPersistent,
                             .is_gathered = true,
                             .page_size = 7};
  return AttentionCase(shape, options.seed).run<Traits<RowConfig>>(options);
}

Outcome run_mha_d512_transient(const Options& options) {
  const AttentionShape shape{
      .kernel = "sm100/mha_d512_transient",
      .sequences = {{150, 160}, {70, 0}, {33, 90}},
      .num_kv_heads = 1,
      .group = 2,
      .ctas = 10,  // twice the grid's entries, some of which are no work tile
      .schedule = Schedule::kTransient};
  return AttentionCase(shape, options.seed).run<Traits<RowConfig>>(options);
}

}  // namespace pagoda::emulate
