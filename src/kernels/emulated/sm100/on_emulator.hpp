// The Blackwell instances on the emulator: each shape is a translation unit of its own.
#pragma once

#include "kernels/emulated/on_emulator.hpp"
#include "kernels/sm100/family.hpp"

namespace pagoda::emulated::blackwell {

sm100::Family<OnEmulator> d64_bf16();
sm100::Family<OnEmulator> d128_bf16();
sm100::Family<OnEmulator> d64_f16();
sm100::Family<OnEmulator> d128_f16();
sm100::Family<OnEmulator> d64_f8e4m3();
sm100::Family<OnEmulator> d128_f8e4m3();
sm100::Family<OnEmulator> pair_d128_bf16();
sm100::Family<OnEmulator> pair_d128_f16();
sm100::Family<OnEmulator> pair_d128_f8e4m3();

}  // namespace pagoda::emulated::blackwell
