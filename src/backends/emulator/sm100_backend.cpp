// What "emu:sm100" offers: the rows of kernels/mha_sm100 and kernels/mha_sm100_d512; the two calls beside attention are those of
// every GPU.
#include "backends/emulator/sm100_backend.hpp"

#include <string>
#include <vector>

#include "backends/emulator/emulated_machine.hpp"
#include "backends/emulator/sm100/on_emulator.hpp"
#include "backends/emulator/sm100_deep/on_emulator.hpp"
#include "backends/emulator/sm90_backend.hpp"
#include "kernels/mha_sm100/registry_rows.hpp"
#include "kernels/mha_sm100_d512/registry_rows.hpp"

namespace pagoda::emulator {
namespace {

using namespace blackwell;

struct Blackwell {
  static constexpr const char* kBackend = "emu:sm100";
};
using Machine = EmulatedMachine<Blackwell>;

std::span<const core::Kernel> kernels() {
  static const kernels::RegistryRows<mha_sm100::RowFunctions, Machine> kRows(
      std::vector{d64_bf16(), d128_bf16(), d64_f16(), d128_f16(), d64_f8e4m3(), d128_f8e4m3(),
                  pair_d128_bf16(), pair_d128_f16(), pair_d128_f8e4m3()});
  static const kernels::RegistryRows<mha_sm100_d512::RowFunctions, Machine> kDeepRows(
      std::vector{d256_bf16(), d512_bf16(), d256_f16(), d512_f16(), d256_f8e4m3(), d512_f8e4m3()});
  static const std::vector<core::Kernel> kAll = [] {
    std::vector<core::Kernel> all;
    for (const auto rows : {kRows.kernels(), kDeepRows.kernels()}) {
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
    backend.name = Blackwell::kBackend;
    backend.kernels = kernels;
    backend.description = [] {
      return std::string("the GPU kernels for sm_100a on the emulator: slow");
    };
    return backend;
  }();
  return kBackend;
}

}  // namespace pagoda::emulator
