// is_ranked_lower (launch_plan.hpp): which calls are left to the kernels on cp.async, which are
// faster there.
#include <string>

#include "kernels/common/call_arguments.hpp"
#include "kernels/common/kv_buffer/decode_call.hpp"
#include "kernels/common/kv_buffer/decode_grid.hpp"
#include "kernels/mha_sm90/call_tiles.hpp"
#include "kernels/mha_sm90/launch_plan.hpp"
#include "kernels/mha_sm90/packed_launch.hpp"

namespace pagoda::mha_sm90 {
namespace {

using core::Problem;

// A few query rows over up to so many bytes of keys and values are left to kernels without tensor
// maps, whose chain of dependent loads is shorter. Measured, README.md.
constexpr int64_t kSmallDecodeBytes = int64_t{512} << 20;

// Latent attention of up to 16 rows, or of few bytes.
bool is_latent_ranked_lower(const Problem& p, int32_t num_sms, const Options& options,
                            std::string* reason) {
  if (options.schedule != pagoda::Schedule::kAutomatic || options.num_kv_splits != 0 ||
      !kernels::kv_buffer::is_decode_call(p) ||
      !kernels::kv_buffer::suits_latent_decode(p, num_sms)) {
    return false;
  }
  if (reason != nullptr) {
    *reason = std::to_string(p.group * p.max_seqlen_q) +
              " query rows of latent attention: faster by cp.async, 16 rows at a time";
  }
  return true;
}

}  // namespace

bool is_ranked_lower(const Problem& p, int32_t num_sms, const Options& options,
                     std::string* reason) {
  // A sequence's kernel must not depend on the rest of its batch, on which these bytes do.
  if (options.is_batch_invariant) return false;
  if (p.head_dim_qk > 256 || p.head_dim_vo > 256) {
    return is_latent_ranked_lower(p, num_sms, options, reason);
  }
  const auto element_bytes = static_cast<int64_t>(size_bytes(p.k.dtype));
  const int64_t row_bytes = element_bytes * (p.head_dim_qk + p.head_dim_vo) * p.num_kv_heads;
  const int64_t bytes = row_bytes * p.batch * p.max_seqlen_kv_bound;
  const bool is_plain = kernels::score_class(p) == ScoreClass::kPlain;
  const bool is_plain_64 = is_plain && p.head_dim_qk == 64 && p.head_dim_vo == 64;
  const bool is_measured = is_plain && p.head_dim_qk == 128 && p.head_dim_vo == 128 &&
                           (p.kv_kind == core::KVKind::kDense || kernels::has_even_pages(p, 16));
  const bool is_decoded = options.schedule == pagoda::Schedule::kAutomatic &&
                          options.num_kv_splits == 0 && kernels::kv_buffer::is_decode_call(p) &&
                          kernels::kv_buffer::suits_decode_rows(p, num_sms);
  const int64_t row_tiles = int64_t{p.batch} * p.num_kv_heads;
  const bool has_few_bytes = bytes <= kSmallDecodeBytes;
  bool is_faster_there = has_few_bytes;
  if (p.head_dim_qk <= 64) {
    is_faster_there = is_plain_64 || is_decoded;
  } else if (is_plain && !is_decoded && (p.head_dim_qk != 128 || p.head_dim_vo != 128)) {
    is_faster_there = false;  // token generation reads padded rows at half of the copy rate
  } else if (is_measured && p.max_seqlen_q > 1 && !is_decoded) {
    is_faster_there = row_tiles > num_sms || (has_few_bytes && !is_one_each(row_tiles, num_sms));
  } else if (is_decoded) {
    is_faster_there = true;
  } else if (const int depth = kernels::kv_buffer::decode_depth(p);
             is_measured && row_tiles <= kernels::kv_buffer::most_decode_row_tiles(depth)) {
    const int32_t fewest_ctas = kernels::kv_buffer::decode_occupancy(depth).fewest;
    is_faster_there = has_few_bytes || row_tiles <= int64_t{num_sms} * fewest_ctas ||
                      kernels::kv_buffer::unsplit_ctas_per_sm(row_tiles, depth, num_sms) > 0;
  }
  const int32_t rows = p.max_seqlen_q * p.group;
  const bool is_decoded_fp8 =
      is_decoded && rows <= kWarpRows && kernels::kv_buffer::has_fp8_cache(p);
  const bool is_for_token_generation = p.head_dim_qk <= 128 && p.head_dim_vo <= 128 &&
                                       int64_t{p.group} * p.max_seqlen_q <= kWarpRows;
  const bool is_for_them =
      kernels::kv_buffer::has_fp8_cache(p) ? is_decoded_fp8 : p.k.dtype == p.q.dtype;
  if (!is_for_them || (!is_for_token_generation && !is_decoded) || !is_faster_there ||
      !kernels::has_aligned_kv(p)) {
    return false;
  }
  if (reason != nullptr) {
    *reason = std::to_string(p.group * p.max_seqlen_q) + " query rows of a KV head, " +
              std::to_string(row_tiles) + " KV heads and " + std::to_string((bytes >> 20) + 1) +
              " MiB of keys and values: faster by cp.async";
  }
  return true;
}

}  // namespace pagoda::mha_sm90
