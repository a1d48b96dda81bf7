// Packing: how many query heads of a group a row tile of tokens holds (RowBlock), and how the grid
// of such row tiles is split. Host code.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "kernels/common/call_arguments.hpp"
#include "kernels/mha_sm90/instances.hpp"

namespace pagoda::mha_sm90 {

struct Packing {
  int32_t heads = 1;
  kernels::KVSplits splits{};
  double time = 0;         // splits.time, or that of the loads if it is longer
  double rounds_time = 0;  // the same of splits.rounds_time
  int32_t num_tiles = 0;   // row tiles of the call, partly filled ones included
};

// The one with which `num_ctas` CTAs complete the grid first: of tokens of one head the last row
// tile of a sequence may be nearly empty.
[[nodiscard]] Packing packing_of(const core::Problem& problem, const TileConfig& tile,
                                 int32_t num_ctas);
// The same for plain scores and as many CTAs as fit `num_sms` multiprocessors.
[[nodiscard]] Packing packing_of(const core::Problem& problem, const Shape& shape, RowKind rows,
                                 int32_t num_sms);

}  // namespace pagoda::mha_sm90
