// Launches of small instances of the Hopper attention kernel.
#include "testing/emulate/attention.hpp"

#include "kernels/mha_sm90/kernel.hpp"
#include "testing/emulate/attention_case.hpp"

namespace pagoda::emulate {

using emulator::Options;

namespace {

using Fp8Case = TypedAttentionCase<arch::Float8E4M3>;
using Fp8CacheCase = TypedAttentionCase<arch::BFloat16, arch::Float8E4M3>;

struct PrefillConfig {
  using T = arch::BFloat16;
  static constexpr mha_sm90::TileConfig tile{.depth_qk = AttentionCase::kDepth,
                                             .depth_vo = AttentionCase::kDepth,
                                             .BN = 32,
                                             .q_stages = 2};
};
struct CappedConfig : PrefillConfig {
  static constexpr mha_sm90::TileConfig tile = [] {
    mha_sm90::TileConfig of_prefill = PrefillConfig::tile;
    of_prefill.scores = kernels::ScoreClass::kCapped;
    return of_prefill;
  }();
};
struct MixedConfig : PrefillConfig {
  static constexpr mha_sm90::TileConfig tile = [] {
    mha_sm90::TileConfig of_prefill = PrefillConfig::tile;
    of_prefill.decodes = true;
    return of_prefill;
  }();
};
struct TallConfig {
  using T = arch::BFloat16;
  static constexpr mha_sm90::TileConfig tile{.depth_qk = AttentionCase::kDepth,
                                             .depth_vo = AttentionCase::kDepth,
                                             .BN = 32,
                                             .num_consumers = 3,
                                             .q_stages = 2,
                                             .overlaps_pv = false,
                                             .producer_registers = 32,
                                             .consumer_registers = 160};
};
struct SingleConfig {
  using T = arch::BFloat16;
  static constexpr mha_sm90::TileConfig tile{.depth_qk = AttentionCase::kDepth,
                                             .depth_vo = AttentionCase::kDepth,
                                             .BN = 32,
                                             .num_consumers = 1,
                                             .q_stages = 2,
                                             .is_ping_pong = false,
                                             .ctas_per_sm = 2,
                                             .producer_registers = 64,
                                             .consumer_registers = 192};
};
// One Q stage, as with wide heads.
struct SplitConfig {
  using T = arch::BFloat16;
  static constexpr mha_sm90::TileConfig tile{
      .depth_qk = AttentionCase::kDepth, .depth_vo = AttentionCase::kDepth, .BN = 32};
};
struct StreamKConfig {
  using T = arch::BFloat16;
  static constexpr mha_sm90::TileConfig tile{.depth_qk = AttentionCase::kDepth,
                                             .depth_vo = AttentionCase::kDepth,
                                             .BN = 32,
                                             .has_equal_shares = true};
};
struct DecodeConfig {
  using T = arch::BFloat16;
  static constexpr mha_sm90::TileConfig tile{.depth_qk = AttentionCase::kDepth,
                                             .depth_vo = AttentionCase::kDepth,
                                             .BN = 32,
                                             .num_consumers = 1,
                                             .rows = mha_sm90::RowKind::kPacked,
                                             .is_ping_pong = false,
                                             .ctas_per_sm = 2,
                                             .producer_registers = 64,
                                             .consumer_registers = 192};
};

// One loaded stage of K and V beside two widened ones, as with 128-dim heads.
struct WidenedConfig {
  using T = arch::BFloat16;
  static constexpr mha_sm90::TileConfig tile{.depth_qk = AttentionCase::kDepth,
                                             .depth_vo = AttentionCase::kDepth,
                                             .BN = 32,
                                             .q_stages = 2,
                                             .load = mha_sm90::LoadKind::kTmaWiden,
                                             .consumer_registers = 208};
};

struct PrefillFp8Config {
  using T = arch::Float8E4M3;
  static constexpr mha_sm90::TileConfig tile{.element_bytes = 1,
                                             .depth_qk = AttentionCase::kDepth,
                                             .depth_vo = AttentionCase::kDepth,
                                             .BN = 64,
                                             .swizzle = arch::Swizzle::k64B,
                                             .packs_heads = false,
                                             .is_ping_pong = false,
                                             .consumer_registers = 208};
};
struct GroupFp8Config {
  using T = arch::Float8E4M3;
  static constexpr mha_sm90::TileConfig tile = [] {
    mha_sm90::TileConfig of_heads = PrefillFp8Config::tile;
    of_heads.packs_heads = true;
    return of_heads;
  }();
};
struct TallFp8Config {
  using T = arch::Float8E4M3;
  static constexpr mha_sm90::TileConfig tile{.element_bytes = 1,
                                             .depth_qk = AttentionCase::kDepth,
                                             .depth_vo = AttentionCase::kDepth,
                                             .BN = 64,
                                             .num_consumers = 3,
                                             .swizzle = arch::Swizzle::k64B,
                                             .is_ping_pong = false,
                                             .overlaps_pv = false,
                                             .producer_registers = 32,
                                             .consumer_registers = 136};
};
struct DecodeFp8Config {
  using T = arch::Float8E4M3;
  static constexpr mha_sm90::TileConfig tile{.element_bytes = 1,
                                             .depth_qk = AttentionCase::kDepth,
                                             .depth_vo = AttentionCase::kDepth,
                                             .BN = 64,
                                             .num_consumers = 1,
                                             .swizzle = arch::Swizzle::k64B,
                                             .rows = mha_sm90::RowKind::kPacked,
                                             .is_ping_pong = false,
                                             .producer_registers = 64,
                                             .consumer_registers = 240,
                                             .converter_registers = 64};
};

struct SingleFp8Config {
  using T = arch::Float8E4M3;
  static constexpr mha_sm90::TileConfig tile = [] {
    mha_sm90::TileConfig of_tokens = DecodeFp8Config::tile;
    of_tokens.rows = mha_sm90::RowKind::kTokens;
    return of_tokens;
  }();
};

template <class Config_>
struct Traits {
  using Config = Config_;
  using Kernel = mha_sm90::Kernel<Config>;
  static constexpr int block_rows = mha_sm90::kRows, blocks = Config::tile.num_consumers;
  static constexpr bool fuses_heads = false;
};

}  // namespace

// Tiles of 128 rows: TMA stores whole blocks of 64, registers the others. Sequences end inside
// tiles and pages, one has no keys. Five row tiles a CTA and seven KV tiles: all rings wrap. The
// first consumer leaves out KV tiles of the 128 rows, also in the second work tile of a CTA.
Outcome run_prefill(const Options& options) {
  const AttentionShape shape{.kernel = "sm90/prefill",
                             .sequences = {{128, 130}, {70, 0}, {33, 33}, {70, 75}, {128, 200}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 2,
                             .leaps = true};
  return AttentionCase(shape, options.seed).run<Traits<PrefillConfig>>(options);
}

// Tiles of 192 rows, whose consumers wait for P V before the next Q K'. As in run_prefill all rings
// wrap, and the first two consumers leave out KV tiles.
Outcome run_prefill_tall(const Options& options) {
  const AttentionShape shape{.kernel = "sm90/prefill_tall",
                             .sequences = {{192, 194}, {70, 0}, {33, 33}, {140, 145}, {192, 260}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 2,
                             .leaps = true};
  return AttentionCase(shape, options.seed).run<Traits<TallConfig>>(options);
}

// Tiles of 64 rows by one consumer. As in run_prefill all rings wrap, and a sequence ends in the
// first rows of a tile.
Outcome run_prefill_single(const Options& options) {
  const AttentionShape shape{.kernel = "sm90/prefill_single",
                             .sequences = {{64, 66}, {70, 0}, {33, 33}, {70, 75}, {128, 200}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 2,
                             .leaps = true};
  return AttentionCase(shape, options.seed).run<Traits<SingleConfig>>(options);
}

// A soft cap, with scores below and above the range of the polynomials, and P that overflow.
Outcome run_prefill_capped(const Options& options) {
  const AttentionShape shape{.kernel = "sm90/prefill_capped",
                             .sequences = {{128, 130}, {70, 0}, {33, 33}, {130, 200}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 2,
                             .softcap = 180,
                             .leaps = true};
  return AttentionCase(shape, options.seed).run<Traits<CappedConfig>>(options);
}

// 21 tokens of three heads in a block of 64 rows, the last of which is empty. TMA stores whole
// blocks; sequences end in a block, and one before it.
Outcome run_prefill_packed_heads(const Options& options) {
  const AttentionShape shape{.kernel = "sm90/prefill_packed_heads",
                             .sequences = {{42, 130}, {30, 75}, {50, 50}, {5, 0}, {20, 200}},
                             .num_kv_heads = 2,
                             .group = 3,
                             .ctas = 2,
                             .packed_heads = 3,
                             .leaps = true};
  return AttentionCase(shape, options.seed).run<Traits<PrefillConfig>>(options);
}

// Six CTAs: three share the KV tiles of what decodes, 21 tokens of three heads a block, and then
// draw row tiles of the prompts as the others do, that of the longer one in two splits. A sequence
// that decodes is split, one has no key.
Outcome run_prefill_and_decode(const Options& options) {
  const AttentionShape shape{.kernel = "sm90/prefill_and_decode",
                             .sequences = {{1, 700},
                                           {3, 0},
                                           {30, 1030},
                                           {21, 75},
                                           {21, 90},
                                           {45, 66},
                                           {1, 130},
                                           {21, 33},
                                           {21, 64},
                                           {20, 40}},
                             .num_kv_heads = 1,
                             .group = 3,
                             .ctas = 6,
                             .packed_heads = 3,
                             .is_mixed = true,
                             .leaps = true};
  return AttentionCase(shape, options.seed).run<Traits<MixedConfig>>(options);
}

// Fifteen KV tiles in three splits of five, which the last CTA to finish merges; each split wraps
// the rings twice. Seven KV tiles have two splits, five and two; rows without keys have none, rows
// of one KV tile have one, and TMA stores them.
Outcome run_prefill_split(const Options& options) {
  const AttentionShape shape{.kernel = "sm90/prefill_split",
                             .sequences = {{70, 470}, {70, 20}, {5, 0}, {66, 30}, {70, 200}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 2,
                             .num_splits = 3,
                             .least_split_tiles = 5,
                             .leaps = true};
  return AttentionCase(shape, options.seed).run<Traits<SplitConfig>>(options);
}

// The same, merged by the CTAs that take part: four CTAs are enough for the splits of one row tile.
// Those that begin with the splits of the next one wait in vain and leave their parts to the last.
Outcome run_prefill_shared_merge(const Options& options) {
  const AttentionShape shape{.kernel = "sm90/prefill_shared_merge",
                             .sequences = {{70, 470}, {70, 20}, {5, 0}, {66, 30}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 4,
                             .num_splits = 3,
                             .is_merge_shared = true,
                             .leaps = true};
  return AttentionCase(shape, options.seed).run<Traits<SplitConfig>>(options);
}

// Equal shares of 25 row tiles for eleven CTAs, 2.3 each. Of five row tiles of eight KV tiles CTA 0
// has two and the beginning of the third; CTA 1, which is done with the rest of that earlier, goes
// on with the fourth and a part of the fifth. Others are without rows, without keys, of one KV
// tile.
Outcome run_prefill_equal_shares(const Options& options) {
  const AttentionShape shape{.kernel = "sm90/prefill_equal_shares",
                             .sequences = {{70, 240}, {5, 0}, {5, 20}, {66, 70}},
                             .num_kv_heads = 1,
                             .group = 5,
                             .ctas = 11,
                             .has_equal_shares = true,
                             .leaps = true};
  return AttentionCase(shape, options.seed).run<Traits<StreamKConfig>>(options);
}

// Two tokens of four heads a row tile; 34 KV tiles on six CTAs: intervals of six, which hold
// several row tiles and split others, into up to three.
Outcome run_decode(const Options& options) {
  const AttentionShape shape{.kernel = "sm90/decode",
                             .sequences = {{2, 150}, {1, 37}, {2, 0}, {2, 260}},
                             .num_kv_heads = 2,
                             .group = 4,
                             .ctas = 6};
  return AttentionCase(shape, options.seed).run<Traits<DecodeConfig>>(options);
}

// As run_prefill, over an e4m3 cache: a warpgroup widens K and V.
Outcome run_prefill_widened(const Options& options) {
  const AttentionShape shape{.kernel = "sm90/prefill_widened",
                             .sequences = {{128, 130}, {70, 0}, {33, 33}, {70, 75}, {128, 330}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 2,
                             .leaps = true};
  return Fp8CacheCase(shape, options.seed).run<Traits<WidenedConfig>>(options);
}

// As run_prefill, with e4m3 Q, K and V: a warpgroup transposes V, and O has memory of its own.
Outcome run_prefill_fp8(const Options& options) {
  const AttentionShape shape{.kernel = "sm90/prefill_fp8",
                             .sequences = {{128, 130}, {70, 0}, {33, 33}, {70, 75}, {128, 330}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 2,
                             .leaps = true};
  return Fp8Case(shape, options.seed).run<Traits<PrefillFp8Config>>(options);
}

// As run_prefill_packed_heads, with e4m3 Q, K and V.
Outcome run_prefill_fp8_group(const Options& options) {
  const AttentionShape shape{.kernel = "sm90/prefill_fp8_group",
                             .sequences = {{42, 130}, {30, 75}, {50, 50}, {5, 0}, {20, 330}},
                             .num_kv_heads = 2,
                             .group = 3,
                             .ctas = 2,
                             .packed_heads = 3,
                             .leaps = true};
  return Fp8Case(shape, options.seed).run<Traits<GroupFp8Config>>(options);
}

// As run_prefill_tall, with e4m3 Q, K and V.
Outcome run_prefill_fp8_tall(const Options& options) {
  const AttentionShape shape{.kernel = "sm90/prefill_fp8_tall",
                             .sequences = {{192, 194}, {70, 0}, {33, 33}, {140, 145}, {192, 390}},
                             .num_kv_heads = 1,
                             .group = 2,
                             .ctas = 2,
                             .leaps = true};
  return Fp8Case(shape, options.seed).run<Traits<TallFp8Config>>(options);
}

// Tiles of one consumer, which leaves out maxima: 21 tokens of three heads, which leave a row
// empty; three splits, which the last CTA to finish merges.
Outcome run_prefill_fp8_single(const Options& options) {
  const AttentionShape shape{.kernel = "sm90/prefill_fp8_single",
                             .sequences = {{21, 470}, {9, 20}, {5, 0}, {42, 330}},
                             .num_kv_heads = 1,
                             .group = 3,
                             .ctas = 2,
                             .packed_heads = 3,
                             .num_splits = 3,
                             .leaps = true};
  return Fp8Case(shape, options.seed).run<Traits<SingleFp8Config>>(options);
}

// 18 KV tiles of 64 keys on six CTAs: intervals of three.
Outcome run_decode_fp8(const Options& options) {
  const AttentionShape shape{.kernel = "sm90/decode_fp8",
                             .sequences = {{2, 150}, {1, 37}, {2, 0}, {2, 260}},
                             .num_kv_heads = 2,
                             .group = 4,
                             .ctas = 6};
  return Fp8Case(shape, options.seed).run<Traits<DecodeFp8Config>>(options);
}

}  // namespace pagoda::emulate
