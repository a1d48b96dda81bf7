// The Blackwell instances on the emulator: each shape is a translation unit of its own.
#pragma once

#include "backends/emulator/on_emulator.hpp"
#include "kernels/mha_sm100/family.hpp"

namespace pagoda::emulator::blackwell {

mha_sm100::Family<OnEmulator> d64_bf16();
mha_sm100::Family<OnEmulator> d128_bf16();
mha_sm100::Family<OnEmulator> d64_f16();
mha_sm100::Family<OnEmulator> d128_f16();
mha_sm100::Family<OnEmulator> d64_f8e4m3();
mha_sm100::Family<OnEmulator> d128_f8e4m3();
mha_sm100::Family<OnEmulator> pair_d128_bf16();
mha_sm100::Family<OnEmulator> pair_d128_f16();
mha_sm100::Family<OnEmulator> pair_d128_f8e4m3();

}  // namespace pagoda::emulator::blackwell
