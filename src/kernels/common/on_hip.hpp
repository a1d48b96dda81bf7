// OnHip: launches of attention kernels on an AMD GPU. The host compiler builds it from a
// family's instance.cpp, and clang -x hip the kernels from the same file (hip_kernel.hpp).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>

#include "arch/hip/launch.hpp"
#include "kernels/common/instance.hpp"

namespace pagoda::kernels {

// The symbol in its code object: the mangled name of hip_kernel<Family, shape, variant>, where
// Family is a class in a namespace of pagoda.
template <class Family, size_t shape, size_t variant>
[[nodiscard]] std::string hip_symbol() {
  std::string_view family = typeid(Family).name();  // "N6pagoda10mha_gfx9426FamilyE"
  family.remove_prefix(std::string_view("N6pagoda").size());
  return "_ZN6pagoda7kernels10hip_kernelINS_" + std::string(family) + "Lm" + std::to_string(shape) +
         "ELm" + std::to_string(variant) + "EEEvNS0_18AttentionArgumentsE";
}

struct OnHip {
  using Context = arch::HipStream;

  template <class Family, size_t shape, size_t variant>
  static void launch(int32_t ctas, const LaunchArguments& arguments, arch::HipStream& stream) {
    using Kernel = typename KernelOf<Family, shape, variant>::type;
    static arch::HipKernel kernel(Family::kShapes[shape].name,
                                  hip_symbol<Family, shape, variant>());
    arch::launch(kernel, {.grid = {ctas}, .threads = Kernel::kThreads},
                 std::as_bytes(std::span(&arguments.arguments, 1)), stream, "launching attention");
  }
};

}  // namespace pagoda::kernels
