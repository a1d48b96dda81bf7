// The instances of d256.f8e4m3 on the emulator.
#include "kernels/emulated/sm100_deep/on_emulator.hpp"

namespace pagoda::emulated::blackwell {

sm100_deep::Family<OnEmulator> d256_f8e4m3() {
  return sm100_deep::make_family<OnEmulator, arch::Float8E4M3, arch::BFloat16, 256>();
}

}  // namespace pagoda::emulated::blackwell
