// The instances of d256.bf16 on the emulator.
#include "kernels/emulated/sm90/on_emulator.hpp"

namespace pagoda::emulated {

sm90::Family<OnEmulator> d256_bf16() {
  return sm90::make_family<OnEmulator, arch::BFloat16, 256, 256>();
}

}  // namespace pagoda::emulated
