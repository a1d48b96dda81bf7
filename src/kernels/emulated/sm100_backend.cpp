// What "emu:sm100" offers: the rows of kernels/sm100 and kernels/sm100_deep; the two calls beside attention are those of
// every GPU.
#include "kernels/emulated/sm100_backend.hpp"

#include <string>
#include <vector>

#include "kernels/emulated/sm100/rows.hpp"
#include "kernels/emulated/sm100_deep/rows.hpp"
#include "kernels/emulated/sm90_backend.hpp"

namespace pagoda::emulated {
namespace {

std::span<const core::Kernel> kernels() {
  static const std::vector<core::Kernel> kAll = [] {
    std::vector<core::Kernel> all;
    for (const auto rows : {sm100_kernels(), sm100_deep_kernels()}) {
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }();
  return kAll;
}

}  // namespace

const core::Backend& sm100_backend() {
  static const core::Backend kBackend = [] {
    core::Backend backend = sm90_backend();
    backend.name = "emu:sm100";
    backend.kernels = kernels;
    backend.description = [] {
      return std::string("the GPU kernels for sm_100a on the emulator: slow");
    };
    return backend;
  }();
  return kBackend;
}

}  // namespace pagoda::emulated
