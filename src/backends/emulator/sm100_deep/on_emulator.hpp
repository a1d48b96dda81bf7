// The Blackwell instances for large heads on the emulator: each shape is a translation unit of its own.
#pragma once

#include "backends/emulator/sm100/on_emulator.hpp"
#include "kernels/mha_sm100_d512/family.hpp"

namespace pagoda::emulator::blackwell {

mha_sm100_d512::Family<OnEmulator> d256_bf16();
mha_sm100_d512::Family<OnEmulator> d512_bf16();
mha_sm100_d512::Family<OnEmulator> d256_f16();
mha_sm100_d512::Family<OnEmulator> d512_f16();
mha_sm100_d512::Family<OnEmulator> d256_f8e4m3();
mha_sm100_d512::Family<OnEmulator> d512_f8e4m3();

}  // namespace pagoda::emulator::blackwell
