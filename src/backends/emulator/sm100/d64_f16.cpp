// The instances of d64.f16 on the emulator.
#include "backends/emulator/sm100/on_emulator.hpp"

namespace pagoda::emulator::blackwell {

mha_sm100::Family<OnEmulator> d64_f16() {
  return mha_sm100::make_family<OnEmulator, arch::Half, arch::Half, 64>();
}

}  // namespace pagoda::emulator::blackwell
