// stream_k_ctas: how many CTAs a stream-K partition of packed rows has. Host only.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "kernels/common/kv_buffer/config.hpp"
#include "kernels/common/work_tile.hpp"

namespace pagoda::kernels::kv_buffer {

// Bytes of K and V that a CTA has in flight. Steps of parts of a tile: as measured with whole tiles
// of 16 KB.
[[nodiscard]] double bytes_in_flight(const TileConfig& tile);

// At most `places`, for which a model of the time is least: a number for each row tile, so that
// none computes parts of two, or all where row tiles are more.
[[nodiscard]] int64_t stream_k_ctas(const core::Problem& problem, const PackedRows& packed,
                                    const TileConfig& config, int32_t num_sms, int64_t places);

}  // namespace pagoda::kernels::kv_buffer
