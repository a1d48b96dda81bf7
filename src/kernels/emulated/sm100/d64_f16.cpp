// The instances of d64.f16 on the emulator.
#include "kernels/emulated/sm100/on_emulator.hpp"

namespace pagoda::emulated::blackwell {

sm100::Family<OnEmulator> d64_f16() {
  return sm100::make_family<OnEmulator, arch::Half, arch::Half, 64>();
}

}  // namespace pagoda::emulated::blackwell
