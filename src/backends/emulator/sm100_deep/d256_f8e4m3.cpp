// The instances of d256.f8e4m3 on the emulator.
#include "backends/emulator/sm100_deep/on_emulator.hpp"

namespace pagoda::emulator::blackwell {

mha_sm100_d512::Family<OnEmulator> d256_f8e4m3() {
  return mha_sm100_d512::make_family<OnEmulator, arch::Float8E4M3, arch::BFloat16, 256>();
}

}  // namespace pagoda::emulator::blackwell
