// Launches of small instances of the SIMT attention kernel, with warps of 32 and of 64 lanes.
#include "kernels/mha_simt/kernel.hpp"
#include "testing/emulate/attention.hpp"
#include "testing/emulate/attention_case.hpp"

namespace pagoda::emulate {
namespace {

template <int warp_size>
struct Config {
  static constexpr mha_simt::TileConfig tile{.depth_qk = AttentionCase::kDepth,
                                             .depth_vo = AttentionCase::kDepth,
                                             .BM = 8,
                                             .warp_size = warp_size};
};

template <int warp_size>
struct Traits {
  using Config = emulate::Config<warp_size>;
  using Kernel = mha_simt::Kernel<Config, warp_size == 64 ? 942 : 80>;
  static constexpr int block_rows = Config::tile.BM, blocks = 1;
  static constexpr bool fuses_heads = true;
};

}  // namespace

// Up to four tokens of two heads a row tile. Ten KV tiles: warps have two and three of them, in
// other row tiles one or none.
Outcome run_simt(const emulator::Options& options) {
  const AttentionShape shape{.kernel = "simt/attention",
                             .sequences = {{9, 12}, {5, 0}, {6, 300}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 8,
                             .schedule = kernels::Schedule::kTransient};
  return AttentionCase(shape, options.seed).run<Traits<32>>(options);
}
// Fourteen KV tiles in three splits, which the last CTA to finish merges.
Outcome run_simt_split(const emulator::Options& options) {
  const AttentionShape shape{.kernel = "simt/split",
                             .sequences = {{3, 420}, {4, 20}, {2, 0}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 15,
                             .num_splits = 3,
                             .schedule = kernels::Schedule::kTransient};
  return AttentionCase(shape, options.seed).run<Traits<32>>(options);
}
// The same as simt/attention, four waves.
Outcome run_simt_waves(const emulator::Options& options) {
  const AttentionShape shape{.kernel = "simt/waves",
                             .sequences = {{4, 170}, {3, 0}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 3,
                             .schedule = kernels::Schedule::kTransient};
  return AttentionCase(shape, options.seed).run<Traits<64>>(options);
}

}  // namespace pagoda::emulate
