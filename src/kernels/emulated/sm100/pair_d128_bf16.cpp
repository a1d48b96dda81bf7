// The instances of pair.d128.bf16 on the emulator.
#include "kernels/emulated/sm100/on_emulator.hpp"

namespace pagoda::emulated::blackwell {

sm100::Family<OnEmulator> pair_d128_bf16() {
  return sm100::make_family<OnEmulator, arch::BFloat16, arch::BFloat16, 128, 2>();
}

}  // namespace pagoda::emulated::blackwell
