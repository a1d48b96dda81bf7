// Runs host code as thread 0 of an emulated launch: for tests of device functions that read global
// memory.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "arch/thread.hpp"
#include "emulator/machine/launch.hpp"

namespace pagoda::emulator {

struct OneThread {
  struct Params {
    const std::function<void()>* body;
  };
  struct Storage {};
  static constexpr int kThreads = 32;
  static PAGODA_DEVICE void run(const Params& params) {
    if (arch::thread_idx() == 0) (*params.body)();
  }
};

// `body` may access `buffers` through src/arch; any other access is reported in the result.
inline Result run_on_machine(std::vector<GlobalBuffer> buffers, const std::function<void()>& body) {
  return launch<OneThread>(shape_of<OneThread>("one thread", {1}), {&body}, std::move(buffers));
}

}  // namespace pagoda::emulator
