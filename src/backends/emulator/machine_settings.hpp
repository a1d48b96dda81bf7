// Settings of the emulated machine: for the process, and per thread, which takes precedence.
#pragma once

#include <cstdint>

namespace pagoda::emulator {

// Multiprocessors; 0 = the default of EmulatorSettings.
[[nodiscard]] int32_t num_sms();  // for the calling thread's plans
void set_process_num_sms(int32_t num_sms);

// The setting of a thread. If is_set is false, the process's setting applies.
struct ThreadSetting {
  int32_t num_sms = 0;
  bool is_set = false;
};
[[nodiscard]] ThreadSetting& thread_setting();

}  // namespace pagoda::emulator
