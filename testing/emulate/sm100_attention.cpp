// Launches of small instances of the Blackwell attention kernel on the emulator.
#include "kernels/mha_sm100/kernel.hpp"
#include "testing/emulate/attention.hpp"
#include "testing/emulate/attention_case.hpp"

namespace pagoda::emulate {

using emulator::Options;
using kernels::Schedule;

namespace {

// A swizzle of 128 bytes is as wide as a row of K, a swizzle of 64 gives K and V two parts.
template <int slots, arch::Swizzle swizzle = arch::Swizzle::k128B,
          mha_sm100::ScoreClass scores = mha_sm100::ScoreClass::kPlain>
struct SmallConfig {
  using T = arch::BFloat16;
  using Out = arch::BFloat16;
  static constexpr mha_sm100::TileConfig tile{.depth = AttentionCase::kDepth,
                                              .BN = 32,
                                              .slots = slots,
                                              .swizzle = swizzle,
                                              .scores = scores};
};

// An MMA reads 32 keys of e4m3, so BN = 64 gives P two parts. O is twice as wide as Q.
template <int slots>
struct SmallConfigFp8 {
  using T = arch::Float8E4M3;
  using Out = arch::BFloat16;
  static constexpr mha_sm100::TileConfig tile{.element_bytes = 1,
                                              .depth = AttentionCase::kDepth,
                                              .BN = 64,
                                              .slots = slots,
                                              .swizzle = arch::Swizzle::k64B};
};

// A CTA of a pair loads half of V's columns, hence panels of 32.
template <int slots>
struct SmallPairConfig {
  using T = arch::BFloat16;
  using Out = arch::BFloat16;
  static constexpr mha_sm100::TileConfig tile{.ctas = 2,
                                              .depth = AttentionCase::kDepth,
                                              .BN = 32,
                                              .slots = slots,
                                              .swizzle = arch::Swizzle::k64B};
};

template <class Config_>
struct Traits {
  using Config = Config_;
  using Kernel = mha_sm100::SM100MHA2Q<Config>;
  static constexpr int block_rows = mha_sm100::kRows,
                       blocks = mha_sm100::kHalves * Config::tile.ctas;
  static constexpr bool fuses_heads = true;
};

// e4m3. Persistent: a CTA computes tiles i, i + 2, .. of the grid. Transient: one tile a CTA; a CTA
// whose grid entry is no tile exits at once.
Outcome run_mha_2q_scheduled(const Options& options, Schedule schedule) {
  const bool is_persistent = schedule == Schedule::kPersistent;
  const AttentionShape shape{
      .kernel = is_persistent ? "sm100/mha_2q_persistent" : "sm100/mha_2q_transient",
      .sequences = {{300, 310}, {70, 0}, {33, 90}},
      .num_kv_heads = 1,
      .group = 2,
      .ctas = is_persistent ? 2 : 6,
      .schedule = schedule};
  return TypedAttentionCase<arch::Float8E4M3>(shape, options.seed)
      .run<Traits<SmallConfigFp8<4>>>(options);
}

}  // namespace

// K and V in one ring of three slots, in two parts; work tiles from a queue. Work tiles with two
// halves, whole or with padding rows, with one half, and without keys; one KV tile, and seven,
// which wrap the ring four times.
Outcome run_mha_2q(const Options& options) {
  const AttentionShape shape{.kernel = "sm100/mha_2q",
                             .sequences = {{150, 160}, {70, 0}, {33, 33}, {140, 200}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 2};
  return AttentionCase(shape, options.seed)
      .run<Traits<SmallConfig<3, arch::Swizzle::k64B>>>(options);
}

// K and V in rings of two slots each, two KV splits that the last CTA merges. General scores, which
// are stored back to tensor memory between maximum and exp2.
Outcome run_mha_2q_split(const Options& options) {
  const AttentionShape shape{.kernel = "sm100/mha_2q_split",
                             .sequences = {{140, 300}, {5, 0}, {66, 130}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 2,
                             .num_splits = 2};
  return AttentionCase(shape, options.seed)
      .run<Traits<SmallConfig<4, arch::Swizzle::k128B, mha_sm100::ScoreClass::kGeneral>>>(options);
}

// K and V gathered by two warps into rings of two slots each, in two parts; rows of one half and of
// two.
Outcome run_mha_2q_gathered(const Options& options) {
  const AttentionShape shape{.kernel = "sm100/mha_2q_gathered",
                             .sequences = {{70, 250}, {70, 0}, {33, 33}, {140, 150}},
                             .num_kv_heads = 2,
                             .group = 1,
                             .ctas = 2,
                             .is_gathered = true};
  return AttentionCase(shape, options.seed)
      .run<Traits<SmallConfig<4, arch::Swizzle::k64B>>>(options);
}

// Decode: a stream-K partition of all KV tiles; three heads a token, which do not divide the rows
// of a half. One ring, whole tiles.
Outcome run_mha_2q_decode(const Options& options) {
  const AttentionShape shape{.kernel = "sm100/mha_2q_decode",
                             .sequences = {{2, 150}, {1, 37}, {2, 0}, {50, 130}},
                             .num_kv_heads = 2,
                             .group = 3,
                             .ctas = 4,
                             .schedule = Schedule::kStreamK};
  return AttentionCase(shape, options.seed).run<Traits<SmallConfig<5>>>(options);
}

// Two CTA pairs, K and V in one ring of three slots. Work tiles whose valid rows are in one half or
// in two, end in the first CTA or in the second, or see no key. The short sequences end in their
// first KV tile: one CTA's load warp may be one V tail ahead of its peer's. Q and K have half the
// instance's head dim, so that no MMA reads the second part of K.
Outcome run_mha_2q_pair(const Options& options) {
  const AttentionShape shape{.kernel = "sm100/mha_2q_pair",
                             .sequences = {{300, 310},
                                           {70, 0},
                                           {100, 190},
                                           {33, 90},
                                           {140, 33},
                                           {3, 9},
                                           {5, 21},
                                           {2, 2},
                                           {4, 7},
                                           {1, 17}},
                             .num_kv_heads = 1,
                             .group = 3,
                             .ctas = 4,
                             .schedule = Schedule::kPersistent,
                             .dim_qk = 32};
  return AttentionCase(shape, options.seed).run<Traits<SmallPairConfig<3>>>(options);
}

// Rings of two slots each, in two parts; one work tile a CTA pair.
Outcome run_mha_2q_pair_transient(const Options& options) {
  const AttentionShape shape{.kernel = "sm100/mha_2q_pair_transient",
                             .sequences = {{300, 310}, {70, 0}, {33, 90}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 10,
                             .schedule = Schedule::kTransient};
  return AttentionCase(shape, options.seed).run<Traits<SmallPairConfig<4>>>(options);
}

// A queue of row tiles, of which the leaders draw for both CTAs, with their keys in two parts.
// Three heads a token, so that tiles have padding rows; half the head dim, as above.
Outcome run_mha_2q_pair_split(const Options& options) {
  const AttentionShape shape{.kernel = "sm100/mha_2q_pair_split",
                             .sequences = {{300, 310}, {5, 0}, {66, 130}},
                             .num_kv_heads = 1,
                             .group = 3,
                             .ctas = 4,
                             .num_splits = 2,
                             .dim_qk = 32};
  return AttentionCase(shape, options.seed).run<Traits<SmallPairConfig<4>>>(options);
}

Outcome run_mha_2q_persistent(const Options& options) {
  return run_mha_2q_scheduled(options, Schedule::kPersistent);
}
Outcome run_mha_2q_transient(const Options& options) {
  return run_mha_2q_scheduled(options, Schedule::kTransient);
}

}  // namespace pagoda::emulate
