// The instances of d128.f8e4m3 on the emulator.
#include "backends/emulator/sm100/on_emulator.hpp"

namespace pagoda::emulator::blackwell {

mha_sm100::Family<OnEmulator> d128_f8e4m3() {
  return mha_sm100::make_family<OnEmulator, arch::Float8E4M3, arch::BFloat16, 128>();
}

}  // namespace pagoda::emulator::blackwell
