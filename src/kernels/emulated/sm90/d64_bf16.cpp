// The instances of d64.bf16 on the emulator.
#include "kernels/emulated/sm90/on_emulator.hpp"

namespace pagoda::emulated {

sm90::Family<OnEmulator> d64_bf16() {
  return sm90::make_family<OnEmulator, arch::BFloat16, 64, 64>();
}

}  // namespace pagoda::emulated
