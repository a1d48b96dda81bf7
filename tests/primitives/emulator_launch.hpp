// Launches of the primitive tests on the emulator.
#pragma once

#include <string>
#include <vector>

#include "arch/tma.hpp"
#include "case.hpp"
#include "emulator/machine/launch.hpp"

namespace pagoda::primitives {

// The options of the case that runs now, and the emulator's reports.
struct EmulatorRun {
  emulator::Options options;
  std::vector<emulator::Report> reports;
};
inline EmulatorRun& emulator_run() {
  static EmulatorRun run;
  return run;
}

template <class Kernel>
void launch(arch::Dim3 grid, const typename Kernel::Params& params, const Buffers& buffers) {
  EmulatorRun& run = emulator_run();
  const emulator::Result result =
      emulator::launch<Kernel>(emulator::shape_of<Kernel>("primitive test", grid), params,
                               {emulator::input("in", buffers.in, buffers.in_bytes),
                                emulator::inout("out", buffers.out, buffers.out_bytes)},
                               run.options);
  run.reports.insert(run.reports.end(), result.reports.begin(), result.reports.end());
}

inline arch::TensorMap tensor_map(const arch::TensorMapSpec& spec) { return spec; }

}  // namespace pagoda::primitives
