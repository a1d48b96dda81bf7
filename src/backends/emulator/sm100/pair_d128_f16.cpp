// The instances of pair.d128.f16 on the emulator.
#include "backends/emulator/sm100/on_emulator.hpp"

namespace pagoda::emulator::blackwell {

mha_sm100::Family<OnEmulator> pair_d128_f16() {
  return mha_sm100::make_family<OnEmulator, arch::Half, arch::Half, 128, 2>();
}

}  // namespace pagoda::emulator::blackwell
