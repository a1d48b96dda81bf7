// The instances of d256.f16 on the emulator.
#include "kernels/emulated/sm100_deep/on_emulator.hpp"

namespace pagoda::emulated::blackwell {

sm100_deep::Family<OnEmulator> d256_f16() {
  return sm100_deep::make_family<OnEmulator, arch::Half, arch::Half, 256>();
}

}  // namespace pagoda::emulated::blackwell
