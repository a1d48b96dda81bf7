// The instances of pair.d128.f16 on the emulator.
#include "kernels/emulated/sm100/on_emulator.hpp"

namespace pagoda::emulated::blackwell {

sm100::Family<OnEmulator> pair_d128_f16() {
  return sm100::make_family<OnEmulator, arch::Half, arch::Half, 128, 2>();
}

}  // namespace pagoda::emulated::blackwell
