// The instances of d256.bf16 on the emulator.
#include "kernels/emulated/sm100_deep/on_emulator.hpp"

namespace pagoda::emulated::blackwell {

sm100_deep::Family<OnEmulator> d256_bf16() {
  return sm100_deep::make_family<OnEmulator, arch::BFloat16, arch::BFloat16, 256>();
}

}  // namespace pagoda::emulated::blackwell
