// The CTAs of a stream-K partition, by a model of the time.
#include "kernels/common/kv_buffer/stream_k_ctas.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/int_math.hpp"

namespace pagoda::kernels::kv_buffer {
namespace {

using core::Problem;

// In us, measured on an H200 (mha_sm80/README.md): a KV tile of a CTA
// while CTAs are few; how many bytes in flight of a multiprocessor keep memory busy: beyond them
// the time of a tile grows with the number of CTAs; and the merge of split rows, a chain of loads
// for each row of a warp and each 16 splits.
constexpr double kTileTime = 0.94, kBusyBytes = 0.82 * (48 << 10), kBusyPower = 0.95;
constexpr double kMergeStart = 0.8, kMergeChain = 1.3;

}  // namespace

double bytes_in_flight(const TileConfig& tile) {
  if (!is_async(tile.staging) || tile.k_BK < tile.depth_qk) return 48 << 10;
  return static_cast<double>(tile.kv_bytes()) * tile.num_stages * tile.BN * tile.depth_qk;
}

int64_t stream_k_ctas(const Problem& p, const PackedRows& packed, const TileConfig& config,
                      int32_t num_sms, int64_t places) {
  const int32_t tokens = std::min(packed.tokens, p.max_seqlen_q);
  const int64_t row_tiles = int64_t{p.batch} * core::ceil_div(p.max_seqlen_q, packed.tokens) *
                            p.num_kv_heads * packed.head_tiles;
  const int64_t key_tiles = std::max(1, core::ceil_div(p.max_seqlen_kv_bound, config.BN));
  const double busy_ctas = kBusyBytes / bytes_in_flight(config) * num_sms;
  const double rows_of_warp = core::ceil_div(tokens * packed.heads, 4);
  const auto time = [&](int64_t splits, int64_t tiles) {
    const double busy = static_cast<double>(row_tiles * splits) / busy_ctas;
    const double tile = kTileTime * std::max(1.0, std::pow(busy, kBusyPower));
    const auto chains = rows_of_warp * static_cast<double>(core::ceil_div<int64_t>(splits, 16));
    return static_cast<double>(tiles) * tile +
           (splits == 1 ? 0 : kMergeStart + kMergeChain * chains);
  };
  int64_t best = places;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t most = 1; most <= key_tiles && row_tiles * most <= places; ++most) {
    const int64_t tiles = core::ceil_div(key_tiles, most);  // of a CTA
    const int64_t splits = core::ceil_div(key_tiles, tiles);
    if (time(splits, tiles) >= least) continue;
    best = row_tiles * splits;
    least = time(splits, tiles);
  }
  return best;
}

}  // namespace pagoda::kernels::kv_buffer
