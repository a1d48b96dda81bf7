// The emulator as back ends "emu:sm90" and "emu:sm100": the GPU kernels of a Hopper and of a Blackwell GPU,
// run on the host, thread by thread, on memory of the host. For tests of programs that have no GPU at hand;
// thousands of times slower than one. A library beside pagoda: link pagoda::emulator.
#pragma once

#include <cstdint>

#include "pagoda/status.hpp"

namespace pagoda {

struct EmulatorSettings {
  // Streaming multiprocessors of the emulated GPU; a plan's grid and KV splits follow from it. 132 is an
  // H100's, 148 a B200's. 0: as few as show everything that a kernel does with more, three or four.
  int32_t num_sms = 0;
};

inline constexpr int32_t kMaxEmulatedSms = 1024;

// Adds back ends "emu:sm90" and "emu:sm100" for the rest of the process, before or after other calls, and
// sets the settings of all threads' plans from then on. Called again it changes the settings only.
// kInvalidArgument where num_sms is not from 0 to kMaxEmulatedSms; then nothing has changed.
[[nodiscard]] Status register_emulator(const EmulatorSettings& settings = {});

// Settings for what the calling thread plans while the scope lives; scopes nest. A plan keeps the settings
// that it was made with, wherever it runs. Values out of range are those of the nearest one in range.
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
