// DecodeGrid: how decoding divides the row tiles of a call among clusters of CTAs. Host only.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "kernels/common/attention_params.hpp"
#include "kernels/common/kv_buffer/config.hpp"

namespace pagoda::kernels::kv_buffer {

struct DecodeGrid {
  int32_t cluster = 1;   // CTAs
  int64_t clusters = 1;  // that the KV tiles are divided among
  int64_t ctas = 1;
  int32_t min_tiles = 1;
  DecodeShares shares = DecodeShares::kEven;
  int32_t most_ctas_per_sm = 0;
};

// For a GPU of `num_sms` multiprocessors, by the time that a model says. Without clusters (before
// sm_90) by rules for how full the last wave of CTAs is.
[[nodiscard]] DecodeGrid decode_grid(const core::Problem& problem, const TileConfig& tile,
                                     int32_t num_sms, bool has_clusters);

// Of a call that kernels for decoding serve (is_decode_call): whether it has one row tile of each
// KV head, or is faster in several than in packed rows of mha_sm90.
[[nodiscard]] bool suits_decode_rows(const core::Problem& problem, int32_t num_sms);

// Of such a call of latent rows: whether it is faster here than in row tiles of 64 rows.
[[nodiscard]] bool suits_latent_decode(const core::Problem& problem, int32_t num_sms);

// With how many CTAs a multiprocessor decoding keeps the GPU busy to its end where each row tile is
// one CTA and none is split; 0: with any number a last wave would leave too much of it idle.
[[nodiscard]] int32_t unsplit_ctas_per_sm(int64_t row_tiles, int depth, int32_t num_sms);

}  // namespace pagoda::kernels::kv_buffer
