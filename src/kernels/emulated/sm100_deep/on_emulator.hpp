// The Blackwell instances for large heads on the emulator: each shape is a translation unit of its own.
#pragma once

#include "kernels/emulated/sm100/on_emulator.hpp"
#include "kernels/sm100_deep/family.hpp"

namespace pagoda::emulated::blackwell {

sm100_deep::Family<OnEmulator> d256_bf16();
sm100_deep::Family<OnEmulator> d512_bf16();
sm100_deep::Family<OnEmulator> d256_f16();
sm100_deep::Family<OnEmulator> d512_f16();
sm100_deep::Family<OnEmulator> d256_f8e4m3();
sm100_deep::Family<OnEmulator> d512_f8e4m3();

}  // namespace pagoda::emulated::blackwell
