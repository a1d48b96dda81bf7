// The schedule of kernels/attention under this kernel's names.
#pragma once

#include "kernels/attention/key_shares.hpp"
#include "kernels/attention/work.hpp"
#include "kernels/attention/work_ring.hpp"
#include "kernels/sm90/config.hpp"

namespace pagoda::sm90 {

using kernel::AttentionParams;
using kernel::find_share;
using kernel::GridWork;
using kernel::PackedRows;
using kernel::ShareStart;
using kernel::ShareStorage;
using kernel::ShareWork;
using kernel::Work;
using kernel::WorkReader;
using kernel::WorkRing;
using kernel::WorkWriter;

}  // namespace pagoda::sm90
