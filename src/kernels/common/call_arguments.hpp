// From a call to what every attention kernel is told: arguments, tensor maps, the workspace of split
// rows. Host code without a machine; reads no length unless it lies on the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "arch/layout/swizzle.hpp"
#include "arch/layout/tensor_map.hpp"
#include "core/problem.hpp"
#include "kernels/common/attention_params.hpp"
#include "kernels/common/kinds.hpp"

namespace pagoda::kernels {

[[nodiscard]] ScoreClass score_class(const core::Problem& problem);

// Query rows of the batch, in memory.
[[nodiscard]] int64_t total_rows(const core::Problem& problem);

// Tiles of `tokens` tokens of `heads` query heads each, the longest first where a mask has an end.
[[nodiscard]] schedule::TileGrid tile_grid(const core::Problem& problem, int32_t heads,
                                           int32_t tokens);

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
