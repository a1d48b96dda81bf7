// From a call to what every attention kernel is told: arguments, tensor maps, the workspace of split
// rows. Host code without a machine; reads no length unless it lies on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "arch/layout/swizzle.hpp"
#include "arch/layout/tensor_map.hpp"
#include "core/problem.hpp"
#include "kernels/common/attention_params.hpp"
#include "kernels/common/kinds.hpp"

namespace pagoda::kernels {

[[nodiscard]] ScoreClass score_class(const core::Problem& problem);

// Query rows of the batch, in memory.
[[nodiscard]] int64_t total_rows(const core::Problem& problem);

// Tiles of `tokens` tokens of `heads` query heads each. Where a mask bounds the keys on the right (causal), the
// longest tiles come first, over as many heads at a time as have their K and V in `l2_bytes`.
[[nodiscard]] schedule::TileGrid tile_grid(const core::Problem& problem, int32_t heads,
                                           int32_t tokens, int64_t l2_bytes);

// --- rules that the launch plans share -----------------------------------------------------------

// Sequences of up to so many query rows share the key tiles of the whole batch (stream-K); longer ones fill
// tiles of tokens. Measured on an H200 (mha_sm90/README.md); Blackwell takes the same value unmeasured.
inline constexpr int32_t kShortRows = 64;

// Why element types, head dims or a score functor keep a kernel of these from serving; empty: they do not.
[[nodiscard]] std::string unsupported_types_reason(const core::Problem& problem, DType dtype,
                                                   int depth_qk, int depth_vo, bool has_fp8_cache);

// KV splits of each of `tiles` tiles, so that they fill the GPU; at least four key tiles a split, for less
// does not pay for the merge.
[[nodiscard]] int32_t num_kv_splits(int32_t tiles, int32_t num_sms, int32_t key_tiles);

// The most CTAs of a stream-K partition that get work: the key tiles of all packed rows. `tokens` and
// `head_tiles`: PackedRows.
[[nodiscard]] int64_t max_stream_k_ctas(const core::Problem& problem, int32_t tokens,
                                        int32_t head_tiles, int32_t BN);

// Is there, or may there be, a sequence of 1 .. `short_rows` query rows among longer ones?
[[nodiscard]] bool may_have_short_rows(const core::Problem& problem, int32_t short_rows);

// All that follows from the call alone; no schedule and no workspace.
void set_call(const core::Problem& problem, AttentionArguments& arguments);

// --- tensor maps: panels as wide as the swizzle ------------------------------------------------

// Of K or V in tiles of BN keys.
[[nodiscard]] arch::TensorMapSpec kv_map(const core::Problem& problem, const core::KVView& view,
                                         int32_t dim, int32_t BN, arch::Swizzle swizzle);
// Of Q or O: boxes of `tokens` rows of `heads` heads.
[[nodiscard]] arch::TensorMapSpec rows_map(const core::Problem& problem, const core::RowView& view,
                                           int32_t dim, int32_t heads, int32_t tokens,
                                           arch::Swizzle swizzle);
// TMA's rules, and coordinates of 31 bits.
[[nodiscard]] bool is_possible(const arch::TensorMapSpec& spec);
// Whether TMA can move K and V, of any type, in tiles of BN keys.
[[nodiscard]] bool is_kv_by_tma(const core::Problem& problem, int32_t BN, arch::Swizzle swizzle);

// --- the workspace of split rows (split_rows.hpp) ----------------------------------------------

struct SplitWorkspace {
  // In this order; the counters, with the queue of the grid before them, are zero between launches.
  int64_t counter_bytes = 0, stats_bytes = 0, partial_bytes = 0;

  // For `blocks` blocks of partial results of one launch.
  void hold(int64_t blocks, int32_t block_rows, int32_t depth);
  void finish();  // after the last launch
  [[nodiscard]] int64_t bytes() const { return counter_bytes + stats_bytes + partial_bytes; }
  void set(std::span<std::byte> workspace, AttentionArguments& arguments) const;
};

}  // namespace pagoda::kernels
