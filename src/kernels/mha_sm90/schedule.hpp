// The schedule that all attention kernels share (kernels/common), in this kernel's namespace.
#pragma once

#include "kernels/common/grid_work.hpp"
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

}  // namespace pagoda::mha_sm90
