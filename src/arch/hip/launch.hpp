// Launches a kernel of a code object on the current device.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "arch/hip/code_object.hpp"
#include "arch/hip/runtime.hpp"
#include "arch/layout/types.hpp"

namespace pagoda::arch {
inline namespace hip {

// A kernel, whose code is loaded on a device when that device first runs it. Lives as long as the
// process.
class HipKernel {
 public:
  // The symbol `symbol` of the code objects `code`, one for each target.
  HipKernel(std::string code, std::string symbol)
      : code_(std::move(code)), symbol_(std::move(symbol)) {}

  // Throws std::runtime_error if the device's target has no code or the code does not load.
  [[nodiscard]] HipFunction on_current_device();

 private:
  [[nodiscard]] HipFunction load(int device) const;

  static constexpr size_t kMaxDevices = 64;
  std::string code_;
  std::string symbol_;
  std::array<std::atomic<HipFunction>, kMaxDevices> functions_{};
};

struct LaunchShape {
  Dim3 grid;
  int32_t threads = 0;  // of a workgroup, one dimension
};

// `params`: the bytes of the kernel's one parameter. LDS is static. `what`: "launching append_kv".
void launch(HipKernel& kernel, LaunchShape shape, std::span<const std::byte> params,
            HipStream stream, const char* what);

}  // namespace hip
}  // namespace pagoda::arch
