// A call in the tiles of a kernel: the grid of row tiles of tokens, the tensor map of Q, and how K
// and V are loaded. Host code.
#pragma once

#include <cstdint>
#include <optional>

#include "arch/layout/tensor_map.hpp"
#include "core/problem.hpp"
#include "kernels/mha_sm90/instances.hpp"
#include "kernels/mha_sm90/launch_plan.hpp"
#include "schedule/tile_grid.hpp"

namespace pagoda::mha_sm90 {

inline constexpr int32_t kFewKeys = 1024;  // of a short prompt, at most

[[nodiscard]] TileConfig tile_of(const Shape& shape, RowKind rows, ScoreClass scores,
                                 LoadKind load = LoadKind::kTma);

// Q in boxes of the rows of a consumer: kRows / heads tokens of `heads` query heads.
[[nodiscard]] arch::TensorMapSpec q_map(const core::Problem& problem, const TileConfig& tile,
                                        int32_t heads = 1);

// Whether TMA can load K and V in KV tiles of `tile`.
[[nodiscard]] bool is_kv_by_tma(const core::Problem& problem, const TileConfig& tile);

// The class of kernels for row tiles of tokens. Packed rows have those of score_class().
[[nodiscard]] ScoreClass tokens_scores(const core::Problem& problem);

// How row tiles of tokens load K and V: kTma or kTmaWiden. Nullopt: TMA can't load Q, K or V.
[[nodiscard]] std::optional<LoadKind> tokens_load(const core::Problem& problem, const Shape& shape,
                                                  ScoreClass scores);

// How packed rows of sequences of up to `most_rows` query rows load K and V: kTma, kTmaFp8 or
// kGather.
[[nodiscard]] LoadKind packed_load(const core::Problem& problem, const Shape& shape,
                                   ScoreClass scores, int32_t most_rows);

// The row tiles of a launch of tokens: of its heads, splits and, in equal shares, CTAs.
[[nodiscard]] schedule::TileGrid grid_of(const core::Problem& problem, const TileConfig& tile,
                                         const Launch& launch);

// The bytes of K and V that any row of any sequence sees, by the bounds of the lengths.
[[nodiscard]] int64_t visible_kv_bytes(const core::Problem& problem);

// Prompts rather than chunks of them over many keys, by the bounds of the lengths.
[[nodiscard]] bool are_prompts(const core::Problem& problem);

// Whether a mean row sees half of the keys: a causal mask over prompts.
[[nodiscard]] bool sees_half(const core::Problem& problem, const schedule::TileGrid& grid);

}  // namespace pagoda::mha_sm90
