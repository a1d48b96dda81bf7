// The instances of d64.bf16 on the emulator.
#include "backends/emulator/sm90/on_emulator.hpp"

namespace pagoda::emulator {

mha_sm90::Family<OnEmulator> d64_bf16() {
  return mha_sm90::make_family<OnEmulator, arch::BFloat16, 64, 64>();
}

}  // namespace pagoda::emulator
