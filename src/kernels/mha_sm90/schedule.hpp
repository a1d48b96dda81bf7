// The schedule that all attention kernels share (kernels/common), in this kernel's namespace.
#pragma once

#include "kernels/common/grid_work.hpp"
#include "kernels/common/mixed_work.hpp"
#include "kernels/common/stream_k_start.hpp"
#include "kernels/common/work_ring.hpp"
#include "kernels/mha_sm90/config.hpp"

namespace pagoda::mha_sm90 {

using kernels::AttentionParams;
using kernels::find_stream_k_start;
using kernels::GridWork;
using kernels::PackedRows;
using kernels::StreamKStorage;
using kernels::StreamKWork;
using kernels::Work;
using kernels::WorkReader;
using kernels::WorkRing;
using kernels::WorkWriter;

// Tokens of a consumer in a row tile of tokens, and their rows.
template <class Config>
PAGODA_DEVICE int32_t tokens_of_consumer(const AttentionParams& params) {
  if constexpr (kernels::kMayPackHeads<Config>) return params.row_block.tokens;
  return kRows;
}
template <class Config>
PAGODA_DEVICE int32_t rows_of_consumer(const AttentionParams& params) {
  if constexpr (kernels::kMayPackHeads<Config>) return params.row_block.rows();
  return kRows;
}

}  // namespace pagoda::mha_sm90
