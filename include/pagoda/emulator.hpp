// The emulator as back ends "emu:sm80", "emu:sm90", "emu:sm100" and "emu:gfx942": they run the GPU
// kernels for Ampere and later, Hopper, Blackwell and AMD CDNA3 on the host, thread by thread, on
// host memory. Meant for tests on machines without a GPU; thousands of times slower than a GPU. A
// separate library: link pagoda::emulator.
#pragma once

#include <cstdint>

#include "pagoda/status.hpp"

namespace pagoda {

struct EmulatorSettings {
  // Streaming multiprocessors of the emulated GPU, from 0 to kMaxEmulatedSms. They determine the
  // grid and the KV splits of a plan. An H100 has 132, a B200 has 148. 0 = three or four, the
  // smallest number that exercises every path of a kernel's scheduler.
  int32_t num_sms = 0;
};

inline constexpr int32_t kMaxEmulatedSms = 1024;

// Adds these back ends for the rest of the process and sets the settings of all plans made
// afterwards, on any thread. A second call changes the settings only. Returns
// kInvalidArgument and changes nothing if num_sms is out of range.
[[nodiscard]] Status register_emulator(const EmulatorSettings& settings = {});

// Settings of the plans that the calling thread makes while the scope lives; scopes nest. A plan
// keeps the settings that it was made with. A constructor can't return a Status, so an
// out-of-range num_sms is clamped to 0..kMaxEmulatedSms here; check user input with
// register_emulator().
class EmulatorScope {
 public:
  explicit EmulatorScope(const EmulatorSettings& settings);
  ~EmulatorScope();
  EmulatorScope(const EmulatorScope&) = delete;
  EmulatorScope& operator=(const EmulatorScope&) = delete;

 private:
  EmulatorSettings before_;
  bool had_scope_ = false;
};

}  // namespace pagoda
