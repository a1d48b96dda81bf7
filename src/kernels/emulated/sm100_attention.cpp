// Launches of small instances of the Blackwell attention kernel. No Blackwell chip has run it.
#include "kernels/emulated/attention.hpp"
#include "kernels/emulated/attention_case.hpp"
#include "kernels/sm100/kernel.hpp"

namespace pagoda::emulated {

using emulator::Options;

namespace {

template <int slots>
struct SmallConfig {
  using T = arch::BFloat16;
  using Out = arch::BFloat16;
  static constexpr sm100::TileConfig tile{.depth = AttentionCase::kDepth, .BN = 32, .slots = slots};
};

template <class Config_>
struct Traits {
  using Config = Config_;
  using Kernel = sm100::SM100MHA2Q<Config>;
  static constexpr int block_rows = sm100::kRows, blocks = sm100::kHalves;
  static constexpr bool fuses_heads = true;
};

}  // namespace

// A shared ring. Tiles of two halves, whole and not, of one half, and of rows without keys; a tile that
// is one key tile, and one of seven, which go around the ring four times.
Outcome run_mha_2q(const Options& options) {
  const AttentionShape shape{.kernel = "sm100/mha_2q",
                             .sequences = {{150, 160}, {70, 0}, {33, 33}, {140, 200}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 2};
  return AttentionCase(shape, options.seed).run<Traits<SmallConfig<3>>>(options);
}

}  // namespace pagoda::emulated
