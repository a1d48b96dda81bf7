// What the emulated machine is like: for the whole process, and over that for one thread.
#pragma once

#include <cstdint>

namespace pagoda::emulator {

// Multiprocessors; 0 = as few as show everything that a kernel does.
[[nodiscard]] int32_t num_sms();  // for the calling thread's plans
void set_process_num_sms(int32_t num_sms);

// A thread's own setting; none: the process's holds.
struct ThreadSetting {
  int32_t num_sms = 0;
  bool is_set = false;
};
[[nodiscard]] ThreadSetting& thread_setting();

}  // namespace pagoda::emulator
