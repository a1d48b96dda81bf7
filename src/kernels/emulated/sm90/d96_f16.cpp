// The instances of d96.f16 on the emulator.
#include "kernels/emulated/sm90/on_emulator.hpp"

namespace pagoda::emulated {

sm90::Family<OnEmulator> d96_f16() { return sm90::make_family<OnEmulator, arch::Half, 96, 96>(); }

}  // namespace pagoda::emulated
