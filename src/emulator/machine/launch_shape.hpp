// The configuration of a launch, and how the agents of its CTAs are numbered.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "arch/layout/types.hpp"

namespace pagoda::emulator {

struct LaunchShape {
  std::string kernel;  // its name
  arch::Dim3 grid;
  int cluster_size = 1;
  int threads = 128;
  int warp_size = 32;  // 64: an AMD GPU, with its rules
  size_t shared_bytes = 0;
  int registers = 168;  // a thread, at the launch; setmaxnreg changes them
  bool has_tensor_memory = false;
  bool is_dependent = false;  // starts before the launches before it have ended

  [[nodiscard]] bool is_amd() const { return warp_size == 64; }
  [[nodiscard]] uint32_t num_ctas() const {
    return static_cast<uint32_t>(grid.x * grid.y * grid.z);
  }
  [[nodiscard]] uint32_t ctas_per_cluster() const { return static_cast<uint32_t>(cluster_size); }

  // The agents of a CTA (vector_clock.hpp), by index:
  //
  //   0 .. threads - 1                  threads, for ordinary accesses
  //   threads .. first_engine() - 1     uses of tensor memory, as many as threads; where the launch
  //                                     has tensor memory
  //   first_engine() .. first_slot() - 1  shares of the wgmma of a warpgroup, one a warp
  //   first_slot() ..                   slots of asynchronous operations
  [[nodiscard]] uint32_t first_engine() const {
    return static_cast<uint32_t>(threads) * (has_tensor_memory ? 2U : 1U);
  }
  [[nodiscard]] uint32_t first_slot() const {
    return first_engine() + static_cast<uint32_t>(threads + 31) / 32;
  }
};

}  // namespace pagoda::emulator
