// The Blackwell instances on the emulator: each shape is a translation unit of its own.
#pragma once

#include "arch/emu/runtime/launch.hpp"
#include "kernels/emulated/call_buffers.hpp"
#include "kernels/sm100/family.hpp"

namespace pagoda::emulated::blackwell {

struct EmulatedLaunch {
  const char* name;
  std::vector<emulator::GlobalBuffer> buffers;
  emulator::Options options{};
  emulator::Result result{};  // of the launch
};

struct OnEmulator {
  using Context = EmulatedLaunch;

  template <class K>
  static void launch(int32_t ctas, const sm100::LaunchArguments& arguments,
                     EmulatedLaunch& launch) {
    const auto same = [](const arch::TensorMapSpec& spec) { return spec; };
    launch.result =
        emulator::launch<K>(emulator::shape_of<K>(launch.name, {ctas}),
                            sm100::make_params(arguments, same), launch.buffers, launch.options);
  }
};

sm100::Family<OnEmulator> d64_bf16();
sm100::Family<OnEmulator> d128_bf16();
sm100::Family<OnEmulator> d64_f16();
sm100::Family<OnEmulator> d128_f16();
sm100::Family<OnEmulator> d64_f8e4m3();
sm100::Family<OnEmulator> d128_f8e4m3();
sm100::Family<OnEmulator> pair_d128_bf16();
sm100::Family<OnEmulator> pair_d128_f16();
sm100::Family<OnEmulator> pair_d128_f8e4m3();

}  // namespace pagoda::emulated::blackwell
