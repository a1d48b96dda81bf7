// Launches of cases: launch<Kernel>, from the GPU's header under nvcc, else from the emulator's,
// and make_case, which makes a case of a kernel.
#pragma once

#include <concepts>
#include <string>
#include <utility>

#include "arch/layout/types.hpp"
#include "case.hpp"
#include "core/target.hpp"

#if PAGODA_ON_NVIDIA
#include "gpu/launch.hpp"
#else
#include "emulator_launch.hpp"
#endif

namespace pagoda::primitives {

template <class Kernel>
constexpr int max_arch() {
  if constexpr (requires { Kernel::kMaxArch; }) {
    return Kernel::kMaxArch;
  } else {
    return 1000;
  }
}

// A case that launches one kernel. make_params(const Buffers&) gives its parameters.
template <class Kernel, class MakeParams>
Case make_case(std::string name, arch::Dim3 grid, Bytes input, Bytes output, Bytes expected,
               MakeParams make_params) {
  return {.name = std::move(name),
          .min_arch = Kernel::kMinArch,
          .max_arch = max_arch<Kernel>(),
          .input = std::move(input),
          .output = std::move(output),
          .expected = std::move(expected),
          .run = [grid, make_params = std::move(make_params)](const Buffers& buffers) {
            launch<Kernel>(grid, make_params(buffers), buffers);
          }};
}

// Parameters {const In* in; Out* out}, as most kernels here have them.
template <class Kernel>
auto in_and_out() {
  return [](const Buffers& b) {
    typename Kernel::Params params{};
    params.in = decltype(params.in)::at_address(reinterpret_cast<uint64_t>(b.in));
    params.out = decltype(params.out)::at_address(reinterpret_cast<uint64_t>(b.out));
    return params;
  };
}

}  // namespace pagoda::primitives
