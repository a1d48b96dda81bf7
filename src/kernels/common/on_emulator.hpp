// OnEmulator: launches of attention kernels on the emulator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "arch/memory.hpp"
#include "core/functor.hpp"
#include "emulator/machine/launch.hpp"
#include "kernels/common/instance.hpp"

namespace pagoda::kernels {

struct EmulatedLaunch {
  const char* name;
  std::vector<emulator::GlobalBuffer> buffers;  // that the kernel may access
  emulator::Options options{};
  emulator::Result result{};  // set by launch()
};

// A functor's read of one element.
inline void check_read(const void* address, size_t bytes) {
  const auto read = [address]<class T>(T /*size*/) {
    static_cast<void>(arch::load_read_only(arch::GlobalPtr(static_cast<const T*>(address))));
  };
  switch (bytes) {
    case 1: return read(uint8_t{});
    case 2: return read(uint16_t{});
    case 4: return read(uint32_t{});
    default: return read(uint64_t{});
  }
}

struct OnEmulator {
  using Context = EmulatedLaunch;

  template <class Family, size_t shape, size_t variant>
  static void launch(int32_t ctas, const LaunchArguments& arguments, EmulatedLaunch& launch) {
    using Kernel = typename KernelOf<Family, shape, variant>::type;
    const auto same = [](const arch::TensorMapSpec& spec) { return spec; };
    const core::FunctorReadScope reads(check_read);
    launch.result = emulator::launch<Kernel>(emulator::shape_of<Kernel>(launch.name, {ctas}),
                                             make_params<typename Kernel::Params>(arguments, same),
                                             launch.buffers, launch.options);
  }
};

}  // namespace pagoda::kernels
