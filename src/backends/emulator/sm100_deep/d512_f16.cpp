// The instances of d512.f16 on the emulator.
#include "backends/emulator/sm100_deep/on_emulator.hpp"

namespace pagoda::emulator::blackwell {

mha_sm100_d512::Family<OnEmulator> d512_f16() {
  return mha_sm100_d512::make_family<OnEmulator, arch::Half, arch::Half, 512>();
}

}  // namespace pagoda::emulator::blackwell
