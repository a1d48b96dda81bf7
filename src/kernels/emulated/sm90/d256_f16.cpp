// The instances of d256.f16 on the emulator.
#include "kernels/emulated/sm90/on_emulator.hpp"

namespace pagoda::emulated {

sm90::Family<OnEmulator> d256_f16() {
  return sm90::make_family<OnEmulator, arch::Half, 256, 256>();
}

}  // namespace pagoda::emulated
