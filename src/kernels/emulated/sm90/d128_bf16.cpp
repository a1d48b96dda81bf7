// The instances of d128.bf16 on the emulator.
#include "kernels/emulated/sm90/on_emulator.hpp"

namespace pagoda::emulated {

sm90::Family<OnEmulator> d128_bf16() {
  return sm90::make_family<OnEmulator, arch::BFloat16, 128, 128>();
}

}  // namespace pagoda::emulated
