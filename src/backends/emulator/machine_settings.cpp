// The process-wide setting is atomic because any thread may make a plan at any time.
#include "backends/emulator/machine_settings.hpp"

#include <atomic>

namespace pagoda::emulator {
namespace {

std::atomic<int32_t>& process_num_sms() {
  static std::atomic<int32_t> value = 0;
  return value;
}

}  // namespace

ThreadSetting& thread_setting() {
  static thread_local ThreadSetting setting;
  return setting;
}

int32_t num_sms() {
  const ThreadSetting& setting = thread_setting();
  return setting.is_set ? setting.num_sms : process_num_sms().load(std::memory_order_relaxed);
}

void set_process_num_sms(int32_t num_sms) {
  process_num_sms().store(num_sms, std::memory_order_relaxed);
}

}  // namespace pagoda::emulator
