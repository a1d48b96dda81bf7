// OnEmulator: launches of attention kernels on the emulator.
#pragma once

#include <vector>

#include "emulator/machine/launch.hpp"
#include "kernels/common/instance.hpp"

namespace pagoda::kernels {

struct EmulatedLaunch {
  const char* name;
  std::vector<emulator::GlobalBuffer> buffers;  // that the kernel may access
  emulator::Options options{};
  emulator::Result result{};  // set by launch()
};

struct OnEmulator {
  using Context = EmulatedLaunch;

  template <class Family, size_t shape, size_t variant>
  static void launch(int32_t ctas, const LaunchArguments& arguments, EmulatedLaunch& launch) {
    using Kernel = typename KernelOf<Family, shape, variant>::type;
    const auto same = [](const arch::TensorMapSpec& spec) { return spec; };
    launch.result =
        emulator::launch<Kernel>(emulator::shape_of<Kernel>(launch.name, {ctas}),
                                 make_params(arguments, same), launch.buffers, launch.options);
  }
};

}  // namespace pagoda::kernels
