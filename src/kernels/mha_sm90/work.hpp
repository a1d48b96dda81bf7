// The schedule of kernels/common under this kernel's names.
#pragma once

#include "kernels/common/key_shares.hpp"
#include "kernels/common/work.hpp"
#include "kernels/common/work_ring.hpp"
#include "kernels/mha_sm90/config.hpp"

namespace pagoda::mha_sm90 {

using kernels::AttentionParams;
using kernels::find_share;
using kernels::GridWork;
using kernels::PackedRows;
using kernels::ShareStart;
using kernels::ShareStorage;
using kernels::ShareWork;
using kernels::Work;
using kernels::WorkReader;
using kernels::WorkRing;
using kernels::WorkWriter;

}  // namespace pagoda::mha_sm90
