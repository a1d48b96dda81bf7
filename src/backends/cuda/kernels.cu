// Gathers the rows of src/kernels: one line for each folder's kernels.
#include <vector>

#include "arch/ptx/device.hpp"
#include "backends/cuda/devices.hpp"
#include "backends/cuda/kernels.hpp"
#include "kernels/common/registry_rows.hpp"
#include "kernels/mha_sm100/instances/on_gpu.hpp"
#include "kernels/mha_sm100/registry_rows.hpp"
#include "kernels/mha_sm100_d512/instances/on_gpu.hpp"
#include "kernels/mha_sm100_d512/registry_rows.hpp"
#include "kernels/mha_sm90/instances/on_gpu.hpp"
#include "kernels/mha_sm90/registry_rows.hpp"

namespace pagoda::cuda {
namespace {

struct Gpu {
  using Launcher = kernels::OnGpu;
  static constexpr const char* kBackend = "cuda";

  static std::string unsupported_reason(std::span<const int32_t> archs,
                                        const core::Problem& problem) {
    return cuda::unsupported_reason(archs, problem.device);
  }
  static int32_t num_sms(const core::Problem& problem, int32_t /*fewest*/) {
    return arch::devices()[static_cast<size_t>(problem.device.index)].num_sms;
  }
  static cudaStream_t make_context(const core::Kernel& /*row*/, const core::KernelPlan& /*plan*/,
                                   const core::Problem& /*problem*/,
                                   std::span<std::byte> /*workspace*/,
                                   const core::RunContext& context) {
    return static_cast<cudaStream_t>(context.stream.handle);
  }
  static void finish(cudaStream_t /*stream*/) {}
};

using Sm90Rows = kernels::RegistryRows<mha_sm90::RowFunctions, Gpu>;
using Sm100Rows = kernels::RegistryRows<mha_sm100::RowFunctions, Gpu>;
using Sm100DeepRows = kernels::RegistryRows<mha_sm100_d512::RowFunctions, Gpu>;

// CMake says what is compiled. Other instances are not named: their objects are not there.
constexpr bool kHasSm90 = PAGODA_HAS_SM_90A != 0;
constexpr bool kHasSm100 = PAGODA_HAS_SM_100A != 0 || PAGODA_HAS_SM_103A != 0;

std::vector<Sm90Rows::Family> sm90_families() {
  using namespace mha_sm90;
  if constexpr (kHasSm90) {
    return {d64_bf16(), d96_bf16(), d128_bf16(), d192x128_bf16(), d256_bf16(),
            d64_f16(),  d96_f16(),  d128_f16(),  d192x128_f16(),  d256_f16()};
  } else {
    return {};
  }
}

std::vector<Sm100Rows::Family> sm100_families() {
  using namespace mha_sm100;
  if constexpr (kHasSm100) {
    return {d64_bf16(),    d128_bf16(),      d64_f16(),       d128_f16(),        d64_f8e4m3(),
            d128_f8e4m3(), pair_d128_bf16(), pair_d128_f16(), pair_d128_f8e4m3()};
  } else {
    return {};
  }
}

std::vector<Sm100DeepRows::Family> sm100_deep_families() {
  using namespace mha_sm100_d512;
  if constexpr (kHasSm100) {
    return {d256_bf16(), d512_bf16(), d256_f16(), d512_f16(), d256_f8e4m3(), d512_f8e4m3()};
  } else {
    return {};
  }
}

}  // namespace

std::span<const core::Kernel> kernels() {
  static const Sm90Rows kSm90(sm90_families());
  static const Sm100Rows kSm100(sm100_families());
  static const Sm100DeepRows kSm100Deep(sm100_deep_families());
  static const std::vector<core::Kernel> kAll = [] {
    std::vector<core::Kernel> all;
    for (const auto rows : {kSm90.kernels(), kSm100.kernels(), kSm100Deep.kernels()}) {
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }();
  return kAll;
}

}  // namespace pagoda::cuda
