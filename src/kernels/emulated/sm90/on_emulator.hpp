// The Hopper instances on the emulator: each shape is a translation unit of its own.
#pragma once

#include "kernels/emulated/on_emulator.hpp"
#include "kernels/sm90/family.hpp"

namespace pagoda::emulated {

sm90::Family<OnEmulator> d64_bf16();
sm90::Family<OnEmulator> d96_bf16();
sm90::Family<OnEmulator> d128_bf16();
sm90::Family<OnEmulator> d192x128_bf16();
sm90::Family<OnEmulator> d256_bf16();
sm90::Family<OnEmulator> d64_f16();
sm90::Family<OnEmulator> d96_f16();
sm90::Family<OnEmulator> d128_f16();
sm90::Family<OnEmulator> d192x128_f16();
sm90::Family<OnEmulator> d256_f16();

}  // namespace pagoda::emulated
