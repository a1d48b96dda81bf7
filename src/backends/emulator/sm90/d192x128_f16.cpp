// The instances of d192x128.f16 on the emulator.
#include "backends/emulator/sm90/on_emulator.hpp"

namespace pagoda::emulator {

mha_sm90::Family<OnEmulator> d192x128_f16() {
  return mha_sm90::make_family<OnEmulator, arch::Half, 192, 128>();
}

}  // namespace pagoda::emulator
