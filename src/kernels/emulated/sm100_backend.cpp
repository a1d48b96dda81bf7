// What "emu:sm100" offers: the rows of kernels/sm100; the two calls beside attention are those of
// every GPU.
#include "kernels/emulated/sm100_backend.hpp"

#include <string>

#include "kernels/emulated/sm100/rows.hpp"
#include "kernels/emulated/sm90_backend.hpp"

namespace pagoda::emulated {

const core::Backend& sm100_backend() {
  static const core::Backend kBackend = [] {
    core::Backend backend = sm90_backend();
    backend.name = "emu:sm100";
    backend.kernels = sm100_kernels;
    backend.description = [] {
      return std::string("the GPU kernels for sm_100a on the emulator: slow");
    };
    return backend;
  }();
  return kBackend;
}

}  // namespace pagoda::emulated
