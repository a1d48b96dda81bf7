// The Hopper instances on the emulator: each shape is a translation unit of its own.
#pragma once

#include "backends/emulator/on_emulator.hpp"
#include "kernels/mha_sm90/family.hpp"

namespace pagoda::emulator {

mha_sm90::Family<OnEmulator> d64_bf16();
mha_sm90::Family<OnEmulator> d96_bf16();
mha_sm90::Family<OnEmulator> d128_bf16();
mha_sm90::Family<OnEmulator> d192x128_bf16();
mha_sm90::Family<OnEmulator> d256_bf16();
mha_sm90::Family<OnEmulator> d64_f16();
mha_sm90::Family<OnEmulator> d96_f16();
mha_sm90::Family<OnEmulator> d128_f16();
mha_sm90::Family<OnEmulator> d192x128_f16();
mha_sm90::Family<OnEmulator> d256_f16();

}  // namespace pagoda::emulator
