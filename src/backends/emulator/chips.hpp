// The chips that are emulated, one for each back end.
#pragma once

#include <cstdint>

#include "kernels/common/archs.hpp"

namespace pagoda::emulator {

struct Ampere {
  static constexpr const char* kBackend = "emu:sm80";
  static constexpr const char* kDescription = "the GPU kernels for sm_80 on the emulator: slow";
  static constexpr int32_t kArch = 80;
  static constexpr kernels::Vendor kVendor = kernels::Vendor::kNvidia;
};
struct Hopper {
  static constexpr const char* kBackend = "emu:sm90";
  static constexpr const char* kDescription = "the GPU kernels for sm_90a on the emulator: slow";
  static constexpr int32_t kArch = 90;
  static constexpr kernels::Vendor kVendor = kernels::Vendor::kNvidia;
};
struct Blackwell {
  static constexpr const char* kBackend = "emu:sm100";
  static constexpr const char* kDescription = "the GPU kernels for sm_100a on the emulator: slow";
  static constexpr int32_t kArch = 100;
  static constexpr kernels::Vendor kVendor = kernels::Vendor::kNvidia;
};

struct CDNA3 {
  static constexpr const char* kBackend = "emu:gfx942";
  static constexpr const char* kDescription = "the GPU kernels for gfx942 on the emulator: slow";
  static constexpr int32_t kArch = 942;
  static constexpr kernels::Vendor kVendor = kernels::Vendor::kAmd;
};

}  // namespace pagoda::emulator
