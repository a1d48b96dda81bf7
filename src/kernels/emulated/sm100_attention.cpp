// Launches of small instances of the Blackwell attention kernel. No Blackwell chip has run it.
#include "kernels/emulated/attention.hpp"
#include "kernels/emulated/attention_case.hpp"
#include "kernels/sm100/kernel.hpp"

namespace pagoda::emulated {

using emulator::Options;

namespace {

template <int slots, sm100::ScoreClass scores = sm100::ScoreClass::kPlain>
struct SmallConfig {
  using T = arch::BFloat16;
  using Out = arch::BFloat16;
  static constexpr sm100::TileConfig tile{
      .depth = AttentionCase::kDepth, .BN = 32, .slots = slots, .scores = scores};
};

template <class Config_>
struct Traits {
  using Config = Config_;
  using Kernel = sm100::SM100MHA2Q<Config>;
  static constexpr int block_rows = sm100::kRows, blocks = sm100::kHalves;
  static constexpr bool fuses_heads = true;
};

}  // namespace

using kernel::Schedule;

// K and V in one ring of three slots, tiles from a queue. Tiles of two halves, whole and not, of one
// half, and rows without keys; one key tile, and seven, which go around the ring four times.
Outcome run_mha_2q(const Options& options) {
  const AttentionShape shape{.kernel = "sm100/mha_2q",
                             .sequences = {{150, 160}, {70, 0}, {33, 33}, {140, 200}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 2};
  return AttentionCase(shape, options.seed).run<Traits<SmallConfig<3>>>(options);
}

// K and V in rings of two slots each, a CTA a tile, keys in two parts that the last CTA merges; scores of
// the general class, which go back to tensor memory between maximum and exponentials.
Outcome run_mha_2q_split(const Options& options) {
  const AttentionShape shape{.kernel = "sm100/mha_2q_split",
                             .sequences = {{140, 300}, {5, 0}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 8,
                             .num_splits = 2,
                             .schedule = Schedule::kTransient};
  return AttentionCase(shape, options.seed)
      .run<Traits<SmallConfig<4, sm100::ScoreClass::kGeneral>>>(options);
}

// Decode: equal shares of all keys; three heads a token, which do not divide the rows of a half.
Outcome run_mha_2q_decode(const Options& options) {
  const AttentionShape shape{.kernel = "sm100/mha_2q_decode",
                             .sequences = {{2, 150}, {1, 37}, {2, 0}, {50, 260}},
                             .num_kv_heads = 2,
                             .group = 3,
                             .ctas = 4,
                             .schedule = Schedule::kShares};
  return AttentionCase(shape, options.seed).run<Traits<SmallConfig<5>>>(options);
}

// A fixed share of the tiles a CTA.
Outcome run_mha_2q_persistent(const Options& options) {
  const AttentionShape shape{.kernel = "sm100/mha_2q_persistent",
                             .sequences = {{300, 310}, {70, 0}, {33, 90}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 2,
                             .schedule = Schedule::kPersistent};
  return AttentionCase(shape, options.seed).run<Traits<SmallConfig<4>>>(options);
}

}  // namespace pagoda::emulated
