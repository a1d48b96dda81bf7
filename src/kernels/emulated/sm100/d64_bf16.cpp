// The instances of d64.bf16 on the emulator.
#include "kernels/emulated/sm100/on_emulator.hpp"

namespace pagoda::emulated::blackwell {

sm100::Family<OnEmulator> d64_bf16() {
  return sm100::make_family<OnEmulator, arch::BFloat16, arch::BFloat16, 64>();
}

}  // namespace pagoda::emulated::blackwell
