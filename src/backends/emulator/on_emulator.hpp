// OnEmulator: launches of attention kernels on the emulator, as family.hpp wants them of a machine.
#pragma once

#include <vector>

#include "arch/layout/tensor_map.hpp"
#include "emulator/machine/launch.hpp"

namespace pagoda::emulator {

struct EmulatedLaunch {
  const char* name;
  std::vector<emulator::GlobalBuffer> buffers;
  emulator::Options options{};
  emulator::Result result{};  // of the launch
};

struct OnEmulator {
  using Context = EmulatedLaunch;

  // `Arguments`: the LaunchArguments of the kernel's folder, whose make_params is found with them.
  template <class K, class Arguments>
  static void launch(int32_t ctas, const Arguments& arguments, EmulatedLaunch& launch) {
    const auto same = [](const arch::TensorMapSpec& spec) { return spec; };
    launch.result =
        emulator::launch<K>(emulator::shape_of<K>(launch.name, {ctas}),
                            make_params(arguments, same), launch.buffers, launch.options);
  }
};

}  // namespace pagoda::emulator
