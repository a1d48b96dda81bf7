// Which calls the kernels for decoding serve.
#include "kernels/common/kv_buffer/decode_call.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/int_math.hpp"
#include "core/v_inside_k.hpp"
#include "kernels/common/call_arguments.hpp"
#include "kernels/common/schedule_choice.hpp"
#include "kernels/common/work_tile.hpp"
#include "mask/make_expression_mask.hpp"

namespace pagoda::kernels::kv_buffer {
namespace {

using core::Problem;

constexpr int32_t kMostTokenTiles = 4, kMostLatentTiles = 128;  // of a KV head

// Keys before a token that it sees.
int32_t keys_to_the_left(const Problem& p) {
  return mask::make_expression_mask(p.mask).interval.rule.left;
}

// Whether a sequence's tokens see its last keys, all of them or those of a window, but, at most,
// those of the tokens after them.
bool sees_last_keys(const Problem& p) {
  const mask::IntervalMask interval = mask::make_expression_mask(p.mask).interval;
  return p.seqlens_q_valid.empty() && p.cache_lengths.empty() &&
         interval.valid_lengths == nullptr && interval.rule.chunk == 0 &&
         p.functor.type == nullptr && (score_class(p) == ScoreClass::kPlain || is_capped(p));
}

// Whether the kernels for decoding load Q, K and V of this layout (decode_loads.hpp).
bool has_decode_layout(const Problem& p, const Shape& shape) {
  const auto is_near = [](int64_t stride) { return std::abs(stride) < int64_t{1} << 30; };
  const auto is_multiple = [&](int64_t stride) { return stride % 8 == 0 && is_near(stride); };
  const auto has_near_strides = [&](const core::KVView& view) {
    return is_near(view.outer_stride) && is_near(view.row_stride) && is_near(view.head_stride);
  };
  const bool has_aligned_q = reinterpret_cast<uintptr_t>(p.q.data) % 16 == 0 &&
                             is_multiple(p.q.sequence_stride) && is_multiple(p.q.row_stride) &&
                             is_multiple(p.q.head_stride);
  // One stride from a token to the next, of the same and of another sequence.
  const bool has_even_q =
      p.is_ragged || p.max_seqlen_q == 1 || p.q.sequence_stride == p.max_seqlen_q * p.q.row_stride;
  const bool has_pages =
      has_even_pages(p, kPageRows) &&
      (p.block_table.data == nullptr || is_near(p.block_table.row_stride));  // null: CSR
  return p.head_dim_qk <= shape.depth_qk && p.head_dim_vo <= shape.depth_vo && has_aligned_q &&
         has_even_q && has_aligned_kv(p) && has_near_strides(p.k) && has_near_strides(p.v) &&
         p.leftpad_kv.empty() &&
         (p.kv_kind == core::KVKind::kPaged ? has_pages : p.kv_kind == core::KVKind::kDense);
}

// What the kernels over fp8 caches require beyond is_decode.
bool is_fp8_decode(const Problem& p, const Shape& shape) {
  const auto is_aligned = [](const core::KVView& view) {
    return view.outer_stride % 16 == 0 && view.row_stride % 16 == 0 && view.head_stride % 16 == 0;
  };
  const bool has_aligned_q =
      size_bytes(p.q.dtype) == 2 ||
      (p.q.sequence_stride % 16 == 0 && p.q.row_stride % 16 == 0 && p.q.head_stride % 16 == 0);
  return has_fp8_cache(p) && p.head_dim_qk == shape.depth_qk && p.head_dim_vo == shape.depth_vo &&
         !has_window(p) && !is_capped(p) && is_aligned(p.k) && is_aligned(p.v) && has_aligned_q;
}

// What the kernels of latent rows require.
bool is_latent_decode(const Problem& p, const Shape& shape) {
  return is_latent(shape) && p.head_dim_qk == shape.depth_qk && p.head_dim_vo == shape.depth_vo &&
         core::is_v_inside_k(p) && p.k.dtype == p.q.dtype && !has_window(p) && !is_capped(p);
}

}  // namespace

bool has_fp8_cache(const Problem& p) {
  return p.k.dtype == DType::kF8E4M3 && size_bytes(p.q.dtype) <= 2;
}

TileConfig decode_tile_of(const Problem& p, int depth) {
  if (depth > 256) return latent_tile();
  const Staging staging = has_fp8_cache(p) ? Staging::kAsyncFp8 : Staging::kAsync;
  return decode_tile(depth, false, false, 1, staging);
}

bool has_window(const Problem& p) { return keys_to_the_left(p) < p.max_seqlen_kv_bound - 1; }

int32_t window_keys(const Problem& p) { return keys_to_the_left(p) + p.max_seqlen_q; }

int32_t most_decode_keys(const Problem& p) {
  if (!has_window(p)) return p.max_seqlen_kv_bound;
  return std::min(p.max_seqlen_kv_bound, window_keys(p) + kPageRows - 1);
}

int32_t decode_token_tiles(const Problem& p, const TileConfig& tile) {
  if (p.group > tile.BM) return p.max_seqlen_q * core::ceil_div(p.group, tile.BM);
  return core::ceil_div(p.max_seqlen_q, std::max(1, tile.BM / p.group));
}

int64_t decode_row_tiles(const Problem& p, const TileConfig& tile) {
  return int64_t{p.batch} * p.num_kv_heads * decode_token_tiles(p, tile);
}

bool is_decode(const Problem& p, const Shape& shape, const TileConfig& tile) {
  const bool is_of_latent = tile.is_latent();
  if (p.group > tile.BM && !is_of_latent) return false;
  const int32_t token_tiles = decode_token_tiles(p, tile);
  const int32_t most_tiles = is_of_latent ? kMostLatentTiles : kMostTokenTiles;
  const bool are_few = token_tiles <= most_tiles && p.max_seqlen_q <= kFewTokens;
  if (token_tiles > 1 && !are_few) return false;
  // Of a sequence: SmallDivisor is exact. Of the batch: 32 bits hold them.
  const int64_t tiles =
      int64_t{p.num_kv_heads} * token_tiles * (p.max_seqlen_kv_bound / tile.BN + 1);
  if (tiles >= 1 << 20 || p.batch * tiles >= 1 << 30 || !sees_last_keys(p) ||
      !has_decode_layout(p, shape)) {
    return false;
  }
  if (is_of_latent) return is_latent_decode(p, shape);
  return has_decode_tile(shape) &&
         (has_fp8_cache(p) ? is_fp8_decode(p, shape) : p.k.dtype == p.q.dtype);
}

int decode_depth(const Problem& p) {
  const int32_t larger = std::max(p.head_dim_qk, p.head_dim_vo);
  if (larger > 256) return 576;
  if (larger > 128) return 256;
  return larger > 64 ? 128 : 64;
}

bool is_decode_call(const Problem& p) {
  const int depth = decode_depth(p);
  const Shape shape{"", p.q.dtype, depth, depth > 256 ? 512 : depth};
  const TileConfig tile = decode_tile_of(p, depth);
  return is_decode(p, shape, tile) && decode_row_tiles(p, tile) <= most_decode_row_tiles(depth);
}

core::Fit fit_decode(const Shape& shape, const Problem& p, const Options& options,
                     std::string* reason) {
  using core::Fit;
  const Fit fit = fit_of(p, shape.dtype, shape.depth_qk, shape.depth_vo, true, reason);
  if (fit != Fit::kServes) return fit;
  const ScheduleChoice choice = ScheduleChoice::of(options);
  if (!choice.is_automatic() || options.num_kv_splits != 0 || options.is_batch_invariant) {
    return core::unfit(Fit::kFeatures, reason, [] {
      return "it chooses schedule and KV splits itself, and by the whole batch";
    });
  }
  const TileConfig tile = decode_tile_of(p, shape.depth_qk);
  if (!is_decode(p, shape, tile)) {
    return core::unfit(Fit::kFeatures, reason, [] {
      return "it is for up to four times 16 rows of a KV head, whose tokens see all keys up to "
             "their own or a window of them, without biases, over a dense cache or pages of 16, "
             "32, .. keys, with rows at multiples of 16 bytes, over an e4m3 cache of head dims "
             "64, 128 and 256 alone and without a window or a soft cap";
    });
  }
  const int64_t most = most_decode_row_tiles(shape.depth_qk);
  if (decode_row_tiles(p, tile) > most) {
    return core::unfit(Fit::kFeatures, reason, [&] {
      return "it has workspace for " + std::to_string(most) + " row tiles of all sequences";
    });
  }
  return Fit::kServes;
}

}  // namespace pagoda::kernels::kv_buffer
