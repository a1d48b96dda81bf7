// instance(): the launch functions of one instance, which is one shape of a family with all its
// variants, on one machine. The family's instance.cpp is compiled once for each.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "kernels/common/launch_arguments.hpp"

namespace pagoda::kernels {

// `Launcher`: OnGpu, OnHip or OnEmulator.
template <class Launcher>
using LaunchFunction = void (*)(int32_t ctas, const LaunchArguments& arguments,
                                typename Launcher::Context& context);

// By variant.
template <class Launcher, class Family>
using LaunchFunctions = std::array<LaunchFunction<Launcher>, Family::kNumVariants>;

// The kernel of a variant of Family::kShapes[shape], or void; specialised in the family's
// kernel_of.hpp.
template <class Family, size_t shape, size_t variant>
struct KernelOf;

// Defined where KernelOf is visible (make_instance.hpp) and instantiated in instance.cpp.
template <class Launcher, class Family, size_t shape>
LaunchFunctions<Launcher, Family> instance();

// The index of the shape with this name, for instance.cpp, which gets the name from the build. In a
// constant expression an unknown name does not compile.
template <class Shapes>
constexpr size_t shape_index(const Shapes& shapes, std::string_view name) {
  for (size_t i = 0; i < std::size(shapes); ++i) {
    if (name == shapes[i].name) return i;
  }
  throw "no shape has this name";
}

}  // namespace pagoda::kernels
