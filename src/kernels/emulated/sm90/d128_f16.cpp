// The instances of d128.f16 on the emulator.
#include "kernels/emulated/sm90/on_emulator.hpp"

namespace pagoda::emulated {

sm90::Family<OnEmulator> d128_f16() {
  return sm90::make_family<OnEmulator, arch::Half, 128, 128>();
}

}  // namespace pagoda::emulated
