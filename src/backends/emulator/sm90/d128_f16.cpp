// The instances of d128.f16 on the emulator.
#include "backends/emulator/sm90/on_emulator.hpp"

namespace pagoda::emulator {

mha_sm90::Family<OnEmulator> d128_f16() {
  return mha_sm90::make_family<OnEmulator, arch::Half, 128, 128>();
}

}  // namespace pagoda::emulator
