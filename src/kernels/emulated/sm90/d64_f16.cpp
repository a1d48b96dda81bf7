// The instances of d64.f16 on the emulator.
#include "kernels/emulated/sm90/on_emulator.hpp"

namespace pagoda::emulated {

sm90::Family<OnEmulator> d64_f16() { return sm90::make_family<OnEmulator, arch::Half, 64, 64>(); }

}  // namespace pagoda::emulated
