// The CTAs of a stream-K partition of packed rows.
#include "kernels/mha_sm90/packed_launch.hpp"

#include <algorithm>

#include "core/int_math.hpp"
#include "kernels/common/call_arguments.hpp"
#include "kernels/mha_sm90/call_tiles.hpp"
#include "kernels/mha_sm90/schedule.hpp"

namespace pagoda::mha_sm90 {

using core::Problem;

bool is_one_each(int64_t row_tiles, int32_t num_sms) {
  return row_tiles <= num_sms && 16 * row_tiles >= int64_t{15} * num_sms;
}

Launch packed_launch(const Problem& p, const Shape& shape, ScoreClass scores, LoadKind load,
                     int32_t num_sms) {
  constexpr int32_t kFewRows = 16;
  Launch launch{.rows = RowKind::kPacked, .scores = scores, .load = load};
  const TileConfig tile = tile_of(shape, launch.rows, scores, load);
  const PackedRows packed = PackedRows::of(p.group, tile.block_rows);
  const int64_t most = kernels::max_stream_k_ctas(p, packed.tokens, packed.head_tiles, tile.BN);
  // Many rows take long to merge: half as many CTAs, hence splits, then. Row tiles that are as many
  // as multiprocessors need no split at all (whole_row_tiles), if one CTA's loads keep its
  // multiprocessor's share of memory busy.
  const int32_t rows_of_unit = std::min(packed.tokens, p.max_seqlen_q) * packed.heads;
  const int64_t row_tiles = int64_t{p.batch} * p.num_kv_heads * packed.head_tiles *
                            core::ceil_div(p.max_seqlen_q, packed.tokens);
  const bool has_wide_rows = p.head_dim_qk * size_bytes(p.k.dtype) >= 256;
  const bool has_whole_tiles = has_wide_rows && is_one_each(row_tiles, num_sms);
  const int32_t per_sm = rows_of_unit > kFewRows || has_whole_tiles ? 1 : tile.ctas_per_sm;
  launch.ctas = static_cast<int32_t>(std::min<int64_t>(most, int64_t{num_sms} * per_sm));
  return launch;
}

}  // namespace pagoda::mha_sm90
