// The table of emulated kernels: a line each.
#include "testing/emulate/registry.hpp"

#include <algorithm>

#include "testing/emulate/attention.hpp"
#include "testing/emulate/demo.hpp"
#include "testing/emulate/parts.hpp"
#include "testing/emulate/states.hpp"

namespace pagoda::emulate {
namespace {

using emulator::ReportKind;

// clang-format off
constexpr EmulatedKernel kKernels[] = {
    {"demo/relay", "sm_80", "A warp fills a ring of four stages, another drains it", run_relay},
    {"demo/copy_ring", "sm_90", "The copy engine fills a ring and writes results back", run_copy_ring},
    {"demo/last_block_sum", "sm_80", "The last CTA to finish adds the sums of all CTAs", run_last_block_sum},
    {"demo/tile_product", "sm_90a", "TMA into a ring, wgmma with one group in flight", run_tile_product},
    {"demo/product_chain", "sm_100a", "tcgen05: two products a tile, the second from tensor memory", run_product_chain},
    {"pipeline/shared_ring", "sm_90", "TMAProducerPipeline, KVConsumerPipeline, MBarPipeline: K and V in one ring", run_shared_ring},
    {"pipeline/split_rings", "sm_90", "TMAProducerPipeline, StagedPipeline, MBarPipeline: rings of their own, K in parts", run_split_rings},
    {"operand/paged_tile", "sm_90", "PagedRowIndices: K and V of a tile of 16-key pages in every way", run_paged_tile},
    {"states/append_kv", "sm_80", "New rows of K and V to the slots of an fp8 cache", run_append_kv},
    {"states/merge_states", "sm_80", "35 partial results a row become one, a warp a row", run_merge_states},
    {"sm80/prefill", "sm_80", "Attention on AsyncKVBuffer, tiles of tokens, two loads in flight", run_sm80_prefill},
    {"sm80/prefill_split", "sm_80", "The same, one load in flight, keys in three parts, merged by the last", run_sm80_prefill_split},
    {"sm80/prefill_registers", "sm_80", "Attention on KVBufferImpl, tiles of tokens, two steps a tile, general scores", run_sm80_prefill_registers},
    {"sm80/token", "sm_80", "Attention on AsyncKVBuffer, packed rows: warps share keys and columns, equal shares of all keys", run_sm80_token},
    {"sm80/decode", "sm_80", "One token of each sequence: a partition without shared memory, loads by one function", run_sm80_decode},
    {"sm80/token_registers", "sm_80", "The same on KVBufferImpl, two register stages, general scores", run_sm80_token_registers},
    {"gfx942/prefill", "gfx942", "Attention on KVBufferImpl by MFMA, tiles of tokens, V transposed", run_gfx942_prefill},
    {"gfx942/prefill_split", "gfx942", "The same, general scores, keys in three parts, merged by the last", run_gfx942_prefill_split},
    {"gfx942/token", "gfx942", "The same, packed rows: waves share keys and columns, equal shares of all keys", run_gfx942_token},
    {"simt/attention", "sm_80", "Attention by the FMA units: warps take the KV tiles in turn", run_simt},
    {"simt/split", "sm_80", "The same, keys in three parts, merged by the last", run_simt_split},
    {"simt/waves", "gfx942", "The same, four waves of 64 lanes", run_simt_waves},
    {"sm90/prefill", "sm_90a", "Attention, tiles of tokens: two consumers in turns, a queue of tiles", run_prefill},
    {"sm90/prefill_tall", "sm_90a", "The same, three consumers, whose P V ends before their next Q K'", run_prefill_tall},
    {"sm90/prefill_single", "sm_90a", "The same, one consumer, which takes no turns", run_prefill_single},
    {"sm90/prefill_capped", "sm_90a", "The same, two consumers, a soft cap", run_prefill_capped},
    {"sm90/prefill_packed_heads", "sm_90a", "Attention, tiles of tokens with three query heads each", run_prefill_packed_heads},
    {"sm90/prefill_and_decode", "sm_90a", "The same beside packed rows, in one launch", run_prefill_and_decode},
    {"sm90/prefill_split", "sm_90a", "Attention, tiles of tokens: keys in three parts, merged by the last", run_prefill_split},
    {"sm90/prefill_shared_merge", "sm_90a", "The same, merged by all CTAs", run_prefill_shared_merge},
    {"sm90/prefill_equal_shares", "sm_90a", "Attention, tiles of tokens: an equal share of all keys for each CTA", run_prefill_equal_shares},
    {"sm90/decode", "sm_90a", "Attention, packed rows: equal shares of all keys, merged by the last", run_decode},
    {"sm90/decode_gathered", "sm_90a", "The same, K and V brought row by row by four warps", run_decode_gathered},
    {"sm90/prefill_widened", "sm_90a", "Attention over an e4m3 cache, tiles of tokens: a warpgroup widens K and V", run_prefill_widened},
    {"sm90/prefill_fp8", "sm_90a", "Attention, e4m3, tiles of tokens: a warpgroup transposes V", run_prefill_fp8},
    {"sm90/prefill_fp8_group", "sm_90a", "The same, three query heads a row tile", run_prefill_fp8_group},
    {"sm90/prefill_fp8_tall", "sm_90a", "The same, three consumers, whose P V ends before their next Q K'", run_prefill_fp8_tall},
    {"sm90/prefill_fp8_single", "sm_90a", "The same, one consumer, splits", run_prefill_fp8_single},
    {"sm90/decode_fp8", "sm_90a", "The same, packed rows: equal shares of all keys, merged by the last", run_decode_fp8},
    {"sm90/latent", "sm_90a", "Latent attention, two head tiles: equal shares of all keys, merged by the last", run_latent},
    {"sm90_decode/pairs", "sm_90a", "One token of each sequence: pairs of CTAs send each other partial results, the last pair merges", run_sm90_decode_pairs},
    {"sm90_decode/clusters", "sm_90a", "The same, a cluster of eight CTAs for each KV head", run_sm90_decode_clusters},
    {"sm90_decode/tokens", "sm_90a", "Up to three tokens of each sequence, by pairs of CTAs", run_sm90_decode_tokens},
    {"sm90_decode/row_tiles", "sm_90a", "Up to six tokens of each sequence: two row tiles of a KV head", run_sm90_decode_row_tiles},
    {"sm90_decode/narrow", "sm_90a", "One token of each sequence, by pairs of CTAs: rows of K narrower than the tile", run_sm90_decode_narrow},
    {"sm90_decode/wide", "sm_90a", "One token of each sequence, by pairs of CTAs: head dim 256, KV tiles in two parts", run_sm90_decode_wide},
    {"sm90_decode/e4m3", "sm_90a", "Up to three tokens of each sequence, by a pair for each row tile: an e4m3 cache", run_sm90_decode_fp8},
    {"sm90_decode/e4m3_queries", "sm_90a", "The same by a cluster of eight CTAs, one token, e4m3 queries", run_sm90_decode_fp8_queries},
    {"sm90_decode/e4m3_wide", "sm_90a", "One token of each sequence, by pairs of CTAs: head dim 256, an e4m3 cache", run_sm90_decode_fp8_wide},
    {"sm90_decode/latent", "sm_90a", "One token of each sequence, by pairs of CTAs: latent rows", run_sm90_decode_latent},
    {"sm90_decode/latent_heads", "sm_90a", "Up to two tokens of 20 heads, by a pair for each row tile: latent rows", run_sm90_decode_latent_heads},
    {"sm90_decode/alike", "sm_90a", "One token of each of many sequences, none of which is split", run_sm90_decode_alike},
    {"sm90_decode/general", "sm_90a", "Up to three tokens of each sequence, by pairs of CTAs: a sliding window, a soft cap", run_sm90_decode_general},
    {"sm90_decode/one_each", "sm_90a", "One token of each sequence, by a pair for each row tile", run_sm90_decode_one_each},
    {"sm100/mha_2q", "sm_100a", "Attention, two halves of 128 rows, K and V in one ring, a queue of tiles", run_mha_2q},
    {"sm100/mha_2q_split", "sm_100a", "The same, two rings, general scores, keys in two parts", run_mha_2q_split},
    {"sm100/mha_2q_gathered", "sm_100a", "The same, K and V brought row by row by two warps", run_mha_2q_gathered},
    {"sm100/mha_2q_decode", "sm_100a", "The same, one ring, equal shares of all keys, three heads a token", run_mha_2q_decode},
    {"sm100/mha_2q_persistent", "sm_100a", "The same, e4m3, two rings, a fixed share of the tiles a CTA", run_mha_2q_persistent},
    {"sm100/mha_2q_pair", "sm_100a", "The same by pairs of CTAs, one ring, a fixed share of the tiles a pair", run_mha_2q_pair},
    {"sm100/mha_2q_pair_split", "sm_100a", "The same, two rings, a queue of tiles, keys in two parts", run_mha_2q_pair_split},
    {"sm100/mha_d512", "sm_100a", "Attention by pairs of CTAs, 128 rows each, K in two parts, a fixed share of the tiles", run_mha_d512},
    {"sm100/mha_d512_sections", "sm_100a", "The same with 64 rows in both halves of the lanes, O in two sections, general scores", run_mha_d512_sections},
    {"sm100/mha_d512_decode", "sm_100a", "The same, equal shares of all keys, three heads a token", run_mha_d512_decode},
    {"sm100/mha_d512_split", "sm_100a", "The same with 128 rows a CTA, a queue of tiles, keys in two parts", run_mha_d512_split},
    {"sm100/mha_d512_gathered", "sm_100a", "The same, K and V brought row by row by two warps of each CTA", run_mha_d512_gathered},
    {"planted/race", "sm_90", "No proxy fence before the copy engine reads", run_planted_race, ReportKind::kRace},
    {"planted/deadlock", "sm_90", "One lane releases what counts 32 arrivals", run_planted_deadlock, ReportKind::kDeadlock},
    {"planted/uninitialised", "sm_90", "A lane skips its store", run_planted_uninitialised, ReportKind::kUninitialised},
    {"planted/bounds", "sm_90", "Reads one row out of bounds", run_planted_bounds, ReportKind::kBounds},
    {"planted/protocol", "sm_90", "The CTA ends while the copy engine still reads", run_planted_protocol, ReportKind::kProtocol},
};
// clang-format on

}  // namespace

std::span<const EmulatedKernel> all_kernels() { return kKernels; }

const EmulatedKernel* find_kernel(std::string_view name) {
  const auto* const found =
      std::find_if(std::begin(kKernels), std::end(kKernels),
                   [&](const EmulatedKernel& kernel) { return kernel.name == name; });
  return found != std::end(kKernels) ? found : nullptr;
}

bool is_attention(const EmulatedKernel& kernel) {
  const std::string_view name = kernel.name;
  return name.starts_with("sm") || name.starts_with("gfx") || name.starts_with("simt");
}

}  // namespace pagoda::emulate
