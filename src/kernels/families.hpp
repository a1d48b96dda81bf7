// The families of attention kernels, in the order of their rows in the registry.
#pragma once

#include "kernels/common/kernel_table.hpp"
#include "kernels/mha_gfx942/family.hpp"
#include "kernels/mha_simt/family.hpp"
#include "kernels/mha_sm100/family.hpp"
#include "kernels/mha_sm100_d512/family.hpp"
#include "kernels/mha_sm80/family.hpp"
#include "kernels/mha_sm90/family.hpp"
#include "kernels/mha_sm90_decode/family.hpp"

namespace pagoda::kernels {

using Families = FamilyList<  //
    mha_sm90::Family,         //
    mha_sm90_decode::Family,  //
    mha_sm100::Family,        //
    mha_sm100_d512::Family,   //
    mha_sm80::Family,         //
    mha_gfx942::Family,       //
    mha_simt::Nvidia,         //
    mha_simt::Amd>;

}  // namespace pagoda::kernels
