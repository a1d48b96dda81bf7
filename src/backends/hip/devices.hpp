// The AMD GPUs of this process: their names, and why the HIP back end can't use one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "core/backend.hpp"
#include "kernels/common/archs.hpp"

namespace pagoda::hip {

// The devices that the back end runs on, and why it can't run (empty = it can).
[[nodiscard]] std::string description();
[[nodiscard]] std::string unavailable_reason();
[[nodiscard]] std::string driver();  // "HIP 6.2"

// Why no kernel runs on this device and nothing can be allocated there; empty = it can be used.
[[nodiscard]] std::string unsupported_reason(Device device);
// The same as an error of `field`.
[[nodiscard]] Status check_device(const char* field, Device device);

// Why attention kernels of a family can't run on this device, or are not in this build; empty =
// they can.
[[nodiscard]] bool can_run(const kernels::Archs& archs, Device device);
[[nodiscard]] std::string unsupported_reason(const kernels::Archs& archs, Device device);

// Why a kernel on that device can't read the memory; empty = it can.
[[nodiscard]] std::string misplaced(const void* data, Device device);

// Whether PAGODA_HIP_ARCHITECTURES selected gfx`arch`.
[[nodiscard]] constexpr bool is_held(int32_t arch) {
  constexpr std::array kHeld = {PAGODA_HELD_GFX};
  return std::find(kHeld.begin(), kHeld.end(), arch) != kHeld.end();
}

}  // namespace pagoda::hip
