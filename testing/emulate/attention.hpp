// Runs of the attention kernels of all families, for the registry.
#pragma once

#include "testing/emulate/kernel.hpp"

namespace pagoda::emulate {

Outcome run_sm80_prefill(const emulator::Options& options);
Outcome run_sm80_prefill_split(const emulator::Options& options);
Outcome run_sm80_prefill_registers(const emulator::Options& options);
Outcome run_sm80_token(const emulator::Options& options);
Outcome run_sm80_decode(const emulator::Options& options);
Outcome run_sm80_token_registers(const emulator::Options& options);

Outcome run_sm90_decode_pairs(const emulator::Options& options);
Outcome run_sm90_decode_clusters(const emulator::Options& options);
Outcome run_sm90_decode_tokens(const emulator::Options& options);
Outcome run_sm90_decode_row_tiles(const emulator::Options& options);
Outcome run_sm90_decode_narrow(const emulator::Options& options);
Outcome run_sm90_decode_wide(const emulator::Options& options);
Outcome run_sm90_decode_fp8(const emulator::Options& options);
Outcome run_sm90_decode_fp8_queries(const emulator::Options& options);
Outcome run_sm90_decode_fp8_wide(const emulator::Options& options);
Outcome run_sm90_decode_latent(const emulator::Options& options);
Outcome run_sm90_decode_latent_heads(const emulator::Options& options);
Outcome run_sm90_decode_alike(const emulator::Options& options);
Outcome run_sm90_decode_general(const emulator::Options& options);
Outcome run_sm90_decode_one_each(const emulator::Options& options);

Outcome run_gfx942_prefill(const emulator::Options& options);
Outcome run_gfx942_prefill_split(const emulator::Options& options);
Outcome run_gfx942_token(const emulator::Options& options);

Outcome run_simt(const emulator::Options& options);
Outcome run_simt_split(const emulator::Options& options);
Outcome run_simt_waves(const emulator::Options& options);

Outcome run_prefill(const emulator::Options& options);
Outcome run_prefill_tall(const emulator::Options& options);
Outcome run_prefill_capped(const emulator::Options& options);
Outcome run_prefill_single(const emulator::Options& options);
Outcome run_prefill_packed_heads(const emulator::Options& options);
Outcome run_prefill_and_decode(const emulator::Options& options);
Outcome run_prefill_split(const emulator::Options& options);
Outcome run_prefill_shared_merge(const emulator::Options& options);
Outcome run_prefill_equal_shares(const emulator::Options& options);
Outcome run_decode(const emulator::Options& options);
Outcome run_decode_gathered(const emulator::Options& options);
Outcome run_latent(const emulator::Options& options);
// Not in the registry: their CTAs have one work tile each, so that rings do not come round and no
// mutant of those could be shown (sm90_latent_attention_test.cpp).
Outcome run_latent_window(const emulator::Options& options);
Outcome run_latent_shared_merge(const emulator::Options& options);
Outcome run_prefill_widened(const emulator::Options& options);
Outcome run_prefill_fp8(const emulator::Options& options);
Outcome run_prefill_fp8_group(const emulator::Options& options);
Outcome run_prefill_fp8_tall(const emulator::Options& options);
Outcome run_prefill_fp8_single(const emulator::Options& options);
Outcome run_decode_fp8(const emulator::Options& options);

Outcome run_mha_2q(const emulator::Options& options);
Outcome run_mha_2q_split(const emulator::Options& options);
Outcome run_mha_2q_gathered(const emulator::Options& options);
Outcome run_mha_2q_decode(const emulator::Options& options);
Outcome run_mha_2q_persistent(const emulator::Options& options);
Outcome run_mha_2q_pair(const emulator::Options& options);
Outcome run_mha_2q_pair_split(const emulator::Options& options);
// Not in the registry: with one tile a CTA no ring of work goes around, and mutants of it survive.
Outcome run_mha_2q_transient(const emulator::Options& options);
Outcome run_mha_2q_pair_transient(const emulator::Options& options);

Outcome run_mha_d512(const emulator::Options& options);
Outcome run_mha_d512_sections(const emulator::Options& options);
Outcome run_mha_d512_decode(const emulator::Options& options);
Outcome run_mha_d512_split(const emulator::Options& options);
Outcome run_mha_d512_gathered(const emulator::Options& options);
Outcome run_mha_d512_transient(const emulator::Options& options);  // not in the registry, as above

}  // namespace pagoda::emulate
