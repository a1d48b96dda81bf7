// The instances of d96.bf16 on the emulator.
#include "kernels/emulated/sm90/on_emulator.hpp"

namespace pagoda::emulated {

sm90::Family<OnEmulator> d96_bf16() {
  return sm90::make_family<OnEmulator, arch::BFloat16, 96, 96>();
}

}  // namespace pagoda::emulated
