// Which calls the kernels for decoding serve: up to 16 rows of a KV head, or four times as many in
// several row tiles, of latent rows any number of heads; whose tokens see all keys up to their own,
// or the last of those. Host only.
#pragma once

#include <cstdint>
#include <string>

#include "core/kernel.hpp"
#include "core/problem.hpp"
#include "kernels/common/kv_buffer/variants.hpp"

namespace pagoda::kernels::kv_buffer {

// Row tiles whose partial results fit the workspace that decoding may take, up to two of each
// (decode_grid.hpp), by the padded head dim.
[[nodiscard]] constexpr int64_t most_decode_row_tiles(int depth) {
  if (depth > 256) return 1984;
  return depth > 128 ? 3968 : 7936;
}

// Whether some kernel for decoding serves the call, and the padded head dim of that kernel.
[[nodiscard]] bool is_decode_call(const core::Problem& problem);
[[nodiscard]] int decode_depth(const core::Problem& problem);

// Whether K and V are e4m3. The decoding tile of a call, of whole rows, by that.
[[nodiscard]] bool has_fp8_cache(const core::Problem& problem);
[[nodiscard]] TileConfig decode_tile_of(const core::Problem& problem, int depth);

// Whether that of `tile` serves it, if its workspace is not too large.
[[nodiscard]] bool is_decode(const core::Problem& problem, const Shape& shape,
                             const TileConfig& tile);

// Whether a mask hides the first keys of a sequence: a sliding window. The last keys of a sequence,
// those that any token of it sees then; and how many keys of the longest one are loaded.
[[nodiscard]] bool has_window(const core::Problem& problem);
[[nodiscard]] int32_t window_keys(const core::Problem& problem);
[[nodiscard]] int32_t most_decode_keys(const core::Problem& problem);

// Row tiles of a KV head, which have several tokens or one, or, of latent rows, some heads of one;
// those of the call.
[[nodiscard]] int32_t decode_token_tiles(const core::Problem& problem, const TileConfig& tile);
[[nodiscard]] int64_t decode_row_tiles(const core::Problem& problem, const TileConfig& tile);

// core::Kernel::fit of a shape of a family that has kernels for decoding alone.
[[nodiscard]] core::Fit fit_decode(const Shape& shape, const core::Problem& problem,
                                   const Options& options, std::string* reason);

}  // namespace pagoda::kernels::kv_buffer
